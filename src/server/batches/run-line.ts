import { type Clock, delay } from '../../core/clock.ts';
import type { BatchCaller } from '../caller.ts';
import type { Failure } from '../errors.ts';
import type { InputLine } from './input-lines.ts';

/** Sends one request through the server, as if the batch's key had sent it. */
export type SendLine = (
  endpoint: string,
  body: string,
  caller: BatchCaller,
  options: { readonly signal: AbortSignal; readonly onFailure: (failure: Failure) => void },
) => Promise<Response>;

export interface LineOutcome {
  readonly status: number;
  readonly requestId: string;
  /** JSON. */
  readonly body: string;
}

/** Failures that pass without a change of the request. Others, such as a crash of the engine, are repeated a few times only. */
const PASSING: ReadonlySet<string> = new Set([
  'overloaded',
  'too_many_requests',
  'rate_limit_exceeded',
  'shutting_down',
  'not_loaded',
  'out_of_memory',
]);
const MAX_TRIES = 3;
const MAX_WAIT_MS = 30_000;

interface RunLineContext {
  readonly send: SendLine;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly caller: BatchCaller;
  readonly endpoint: string;
  readonly signal: AbortSignal;
}

/** Runs a line, again while the server has no room for it. Null: the signal was aborted, and the line has no result. */
export async function runLine(line: InputLine, context: RunLineContext): Promise<LineOutcome | null> {
  const { send, clock, caller, endpoint, signal } = context;
  const body = JSON.stringify(line.body);
  for (let numTries = 1; ;) {
    let failure: Failure | null = null;
    const onFailure = (reason: Failure): void => void (failure = reason);
    const response = await send(endpoint, body, caller, { signal, onFailure });
    const text = await response.text().catch(() => null);
    if (signal.aborted) return null;
    const { retryAfterSeconds = null, code = '' } = (failure ?? {}) as Partial<Failure>;
    const canRepeat = retryAfterSeconds !== null && (PASSING.has(code) || numTries < MAX_TRIES);
    if (!canRepeat && text !== null) {
      return { status: response.status, requestId: response.headers.get('x-request-id')!, body: text };
    }
    if (!PASSING.has(code)) numTries++;
    await delay(clock, Math.min((retryAfterSeconds ?? 1) * 1000, MAX_WAIT_MS), signal);
    if (signal.aborted) return null;
  }
}
