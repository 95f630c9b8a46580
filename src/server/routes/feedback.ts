import { RuvLLMError } from '../../core/errors.ts';
import { MAX_TRAJECTORY_TEXT } from '../../runtime/lower-layers.ts';
import {
  type FeedbackReport,
  giveFeedback,
  readReceipt,
  type ReportedOutcome,
} from '../../runtime/learning/operations/index.ts';
import { refusal } from '../errors.ts';
import { json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import { explainRateLimit } from './learning.ts';
import {
  choiceField,
  listField,
  numberField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../wire/fields.ts';

/** As in the operation `feedback`. */
const MAX_COMMENT = 4096;
const MAX_USED_SOURCES = 64;

const FIELDS = {
  request_id: requiredField(stringField(128, 1)),
  score: numberField(0, 1),
  thumbs: choiceField(['up', 'down']),
  correction: stringField(MAX_TRAJECTORY_TEXT, 1),
  comment: stringField(MAX_COMMENT, 1),
  used_sources: listField(stringField(64, 1), MAX_USED_SOURCES),
  source: choiceField(['api', 'ui', 'cli']),
  target: choiceField(['answer', 'route']),
} as const;

/** How long the response waits for the instant learning loop; most loops take less. */
const LEARN_WAIT_MS = 100;

/** `POST /v1/feedback`, and what became of it. */
export const routes = {
  'POST /v1/feedback': {
    summary: 'Rates or corrects an answer: score, thumbs, the right answer, or the recalled texts that it used.',
    body: schemaOf(FIELDS),
    async handle({ readBody, caller, services }) {
      const { request_id: requestId, used_sources: usedSources, source, target, ...parts } = readFields(await readBody(), FIELDS); // prettier-ignore
      const feedback = { ...parts, requestId, source: source ?? ('api' as const), target: target ?? ('answer' as const), usedSources }; // prettier-ignore
      if (usedSources === null && Object.values(parts).every((part) => part === null)) {
        const message = "one of 'score', 'thumbs', 'correction', 'comment' or 'used_sources' is required";
        throw refusal(400, 'missing_required_parameter', message, { param: 'score' });
      }
      const log = feedbackLog(services);
      try {
        const report = await giveFeedback(log, caller.tenant, feedback, LEARN_WAIT_MS);
        services.metrics.countFeedback(feedback.source);
        return json(writeReport(report));
      } catch (error) {
        throw explain(error);
      }
    },
  },
  'GET /v1/feedback/:id': {
    summary:
      'What became of the feedback on a request: remembered, learned, refused and why, already known or superseded.',
    async handle({ params, caller, services }) {
      try {
        const { requestId, verdict, quality, outcome } = await readReceipt(feedbackLog(services), caller.tenant, params['id']!); // prettier-ignore
        return json({
          object: 'feedback',
          request_id: requestId,
          verdict,
          quality,
          outcome: outcome && writeOutcome(outcome),
        });
      } catch (error) {
        throw explain(error);
      }
    },
  },
} satisfies RouteCodes;

function feedbackLog({ feedback: log }: Services) {
  if (log !== null) return log;
  throw refusal(501, 'not_implemented', 'Feedback requires memory. Start the server without --no-memory.');
}

/** Names the wire field that is wrong. */
function explain(error: unknown): unknown {
  if (!(error instanceof RuvLLMError)) return error;
  const { message, code, data } = error;
  if (code === 'not_found') return refusal(404, 'request_not_found', message, { param: 'request_id', cause: error });
  if (data['option'] !== 'usedSources') return explainRateLimit(error);
  return refusal(400, 'unknown_source', message, { param: 'used_sources', cause: error });
}

const writeOutcome = ({ state, reason, lossBefore, lossAfter, supersedes }: ReportedOutcome): object => ({
  state,
  reason,
  loss_before: lossBefore,
  loss_after: lossAfter,
  supersedes,
});

function writeReport({ requestId, verdict, quality, learned, outcome }: FeedbackReport): object {
  const { state, reason, lossBefore, lossAfter } = learned;
  return {
    object: 'feedback',
    request_id: requestId,
    accepted: true,
    verdict,
    quality,
    outcome: writeOutcome(outcome),
    learned: { state, reason, loss_before: lossBefore, loss_after: lossAfter },
  };
}
