import { RuvLLMError } from '../../core/errors.ts';
import { MAX_TRAJECTORY_TEXT } from '../../runtime/lower-layers.ts';
import {
  giveFeedback,
  type Judgement,
  type JudgementReport,
  plainRequestId,
  scoreOf,
} from '../../runtime/learning/operations/index.ts';
import { refusal } from '../errors.ts';
import type { LoggedRequest } from '../../runtime/requests/request-log.ts';
import { type Exchange, json, type Route } from '../route.ts';
import { explainRateLimit } from './learning.ts';
import {
  choiceField,
  listField,
  numberField,
  readFields,
  requiredField,
  schemaOf,
  stringField,
  invalid,
} from '../wire/fields.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

/** As in the learning operation `feedback`. */
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
} as const;

/** How long the response waits for the learning result; most steps take less. */
const LEARN_WAIT_MS = 100;

type FeedbackValues = Pick<Judgement, 'score' | 'thumbs' | 'correction' | 'comment' | 'source'> & {
  readonly usedSources: readonly string[] | null;
};

/** The learning result; null: learning is off or does not know the request. */
async function learnFrom(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  requestId: string,
  values: FeedbackValues,
): Promise<JudgementReport | null> {
  const hasSources = values.usedSources !== null;
  if (services.learning === null) {
    if (hasSources) throw refuseSources(501, 'not_implemented', "'used_sources' requires learning to be enabled");
    return null;
  }
  try {
    return await giveFeedback(services.learning.learning, caller.tenant, { requestId, ...values }, LEARN_WAIT_MS);
  } catch (error) {
    if (error instanceof RuvLLMError && error.data['option'] === 'usedSources') {
      throw refuseSources(400, 'unknown_source', error.message, error);
    }
    if (!(error instanceof RuvLLMError) || error.code !== 'not_found') throw explainRateLimit(error);
    if (!hasSources) return null;
    throw refuseSources(
      400,
      'unknown_source',
      `the recalled texts of request ${JSON.stringify(requestId)} are not stored`,
    );
  }
}

/** Sources that cannot be checked are rejected, because they would train a wrong order. */
const refuseSources = (status: number, code: string, message: string, cause?: unknown): RuvLLMError =>
  refusal(status, code, message, { param: 'used_sources', cause });

/** From the recent requests, or from the trajectories, which are kept for weeks. */
async function findRequest(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  requestId: string,
): Promise<LoggedRequest | null> {
  const { tenant } = caller;
  const recent = services.requests.find(tenant, requestId);
  if (recent !== null || services.learning === null) return recent;
  const trajectory = await services.learning.learning.trajectories.get(tenant, requestId);
  return trajectory === null ? null : { requestId, tenant, model: trajectory.model, createdMs: trajectory.createdMs };
}

/** `POST /v1/feedback`. */
export const feedback: Route = {
  method: 'POST',
  path: '/v1/feedback',
  scope: 'inference',
  summary: 'Rates an answer: a score, thumbs, a correction, a comment, or which of the recalled texts it used.',
  body: schemaOf(FIELDS),
  errors: openaiErrors,
  async handle(exchange) {
    const { services } = exchange;
    const fields = readFields(await exchange.readBody(), FIELDS);
    const requestId = plainRequestId(fields.request_id);
    const { score, thumbs, correction, comment, source, used_sources: usedSources } = fields;
    if ([score, thumbs, correction, comment, usedSources].every((value) => value === null)) {
      throw invalid('score', "given, or 'thumbs', 'correction', 'comment' or 'used_sources'", null);
    }
    scoreOf({ score, thumbs });
    const request = await findRequest(exchange, requestId);
    if (request === null) {
      throw refusal(
        404,
        'request_not_found',
        `request ${JSON.stringify(requestId)} not found among the recent requests of this tenant`,
        {
          param: 'request_id',
        },
      );
    }
    const values = { score, thumbs, correction, comment, usedSources, source: source ?? 'api' };
    const report = await learnFrom(exchange, requestId, values);
    const createdMs = services.clock.wallClock();
    await services.feedback.put({ request, score, thumbs, correction, comment, usedSources, createdMs });
    services.metrics.countFeedback(values.source);
    return json({ object: 'feedback', request_id: requestId, accepted: true, ...writeReport(report) });
  },
};

function writeReport(report: JudgementReport | null): object {
  if (report === null) return {};
  const { verdict, quality, learned } = report;
  const { state, reason, lossBefore, lossAfter } = learned;
  return { verdict, quality, learned: { state, reason, loss_before: lossBefore, loss_after: lossAfter } };
}
