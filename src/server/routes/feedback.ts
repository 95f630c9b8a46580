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
import { explainFlood } from './learning.ts';
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

/** As the operation has it. */
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

/** How long an answer waits to tell what was learned; most steps take less. */
const LEARN_WAIT_MS = 100;

type Words = Pick<Judgement, 'score' | 'thumbs' | 'correction' | 'comment' | 'source'> & {
  readonly usedSources: readonly string[] | null;
};

/** What learning made of it; null: it does not know the request, or there is no learning. */
async function learnFrom(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  requestId: string,
  words: Words,
): Promise<JudgementReport | null> {
  const isOfSources = words.usedSources !== null;
  if (services.learning === null) {
    if (isOfSources) throw refuseSources(501, 'not_implemented', "'used_sources' needs a server that learns");
    return null;
  }
  try {
    return await giveFeedback(services.learning.learning, caller.tenant, { requestId, ...words }, LEARN_WAIT_MS);
  } catch (error) {
    if (error instanceof RuvLLMError && error.data['option'] === 'usedSources') {
      throw refuseSources(400, 'unknown_source', error.message, error);
    }
    if (!(error instanceof RuvLLMError) || error.code !== 'not_found') throw explainFlood(error);
    if (!isOfSources) return null;
    throw refuseSources(
      400,
      'unknown_source',
      `what was recalled for request ${JSON.stringify(requestId)} is not kept`,
    );
  }
}

/** What cannot be checked against what was recalled is not kept: it would teach a wrong order. */
const refuseSources = (status: number, code: string, message: string, cause?: unknown): RuvLLMError =>
  refusal(status, code, message, { param: 'used_sources', cause });

/** As it is remembered: here since the start, or with what can be learned from, for weeks. */
async function findRequest(
  { caller, services }: Pick<Exchange, 'caller' | 'services'>,
  requestId: string,
): Promise<LoggedRequest | null> {
  const { tenant } = caller;
  const recent = services.requests.find(tenant, requestId);
  if (recent !== null || services.learning === null) return recent;
  const kept = await services.learning.learning.trajectories.get(tenant, requestId);
  return kept === null ? null : { requestId, tenant, model: kept.model, createdMs: kept.createdMs };
}

/** `POST /v1/feedback`: what somebody thinks of an answer. */
export const feedback: Route = {
  method: 'POST',
  path: '/v1/feedback',
  scope: 'inference',
  summary:
    'Says how good an answer was: a score, thumbs, what it should have been, or which of the recalled texts it used.',
  body: schemaOf(FIELDS),
  errors: openaiErrors,
  async handle(exchange) {
    const { services } = exchange;
    const given = readFields(await exchange.readBody(), FIELDS);
    const requestId = plainRequestId(given.request_id);
    const { score, thumbs, correction, comment, source, used_sources: usedSources } = given;
    if ([score, thumbs, correction, comment, usedSources].every((word) => word === null)) {
      throw invalid('score', "given, or 'thumbs', 'correction', 'comment' or 'used_sources'", null);
    }
    scoreOf({ score, thumbs });
    const request = await findRequest(exchange, requestId);
    if (request === null) {
      throw refusal(404, 'request_not_found', `there is no request ${JSON.stringify(requestId)} among your last ones`, {
        param: 'request_id',
      });
    }
    const words = { score, thumbs, correction, comment, usedSources, source: source ?? 'api' };
    const report = await learnFrom(exchange, requestId, words);
    const createdMs = services.clock.wallClock();
    await services.feedback.put({ request, score, thumbs, correction, comment, usedSources, createdMs });
    services.metrics.countFeedback(words.source);
    return json({ object: 'feedback', request_id: requestId, accepted: true, ...writeReport(report) });
  },
};

function writeReport(report: JudgementReport | null): object {
  if (report === null) return {};
  const { verdict, quality, learned } = report;
  const { state, reason, lossBefore, lossAfter } = learned;
  return { verdict, quality, learned: { state, reason, loss_before: lossBefore, loss_after: lossAfter } };
}
