import type { LineResult } from '../../runtime/lower-layers.ts';
import type { LineOutcome } from './run-line.ts';
import type { Batch } from './types.ts';

/** Why a line has no response. */
export type MissingReason = 'batch_expired' | 'batch_cancelled' | 'response_too_large';

const MESSAGES: Readonly<Record<MissingReason, string>> = {
  batch_expired: 'This request could not be executed before the completion window expired.',
  batch_cancelled: 'The batch was cancelled before this request was executed.',
  response_too_large: 'The response is too large to be stored.',
};

/** Characters of a result: three bytes each must fit into one transaction of the memory. */
export const MAX_RESULT_CHARS = 2 ** 24;

const newId = (): string => `"batch_req_${crypto.randomUUID()}"`;

// The body is JSON already, and parsing a long one takes time.
const writeAnswered = (customId: string, { status, requestId, body }: LineOutcome): string =>
  `{"id":${newId()},"custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},` +
  `"request_id":${JSON.stringify(requestId)},"body":${body}},"error":null}`;

const writeMissing = (customId: string, reason: MissingReason): string =>
  `{"id":${newId()},"custom_id":${JSON.stringify(customId)},"response":null,` +
  `"error":${JSON.stringify({ code: reason, message: MESSAGES[reason] })}}`;

interface LinePlace {
  readonly line: number;
  readonly customId: string;
  readonly userId: string | null;
}

/** The result of a line that the server answered; one that is too large becomes an error. */
export function answeredLine({ line, customId, userId }: LinePlace, outcome: LineOutcome): LineResult {
  const { status, requestId, body } = outcome;
  const owner = { line, requestId, userId };
  if (body.length > MAX_RESULT_CHARS) {
    return { ...owner, isError: true, text: writeMissing(customId, 'response_too_large') };
  }
  return { ...owner, isError: status !== 200, text: writeAnswered(customId, outcome) };
}

/** The result of a line that never ran. */
export function missingLine({ line, customId, userId }: LinePlace, reason: MissingReason): LineResult {
  return { line, userId, requestId: null, isError: true, text: writeMissing(customId, reason) };
}

const encoder = new TextEncoder();

/** The batch with these results counted. */
export function countResults(batch: Batch, added: readonly LineResult[]): Batch {
  const bytesOf = (isError: boolean): number =>
    added.reduce((sum, one) => sum + (one.isError === isError ? encoder.encode(one.text).length + 1 : 0), 0);
  const numFailed = added.filter(({ isError }) => isError).length;
  return {
    ...batch,
    numSucceeded: batch.numSucceeded + added.length - numFailed,
    numFailed: batch.numFailed + numFailed,
    outputBytes: batch.outputBytes + bytesOf(false),
    errorBytes: batch.errorBytes + bytesOf(true),
  };
}
