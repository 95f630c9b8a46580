import { RuvLLMError } from '../../core/errors.ts';

/** How an engine was lost that is replaced without a request. */
export type EngineLoss = 'stalled' | 'crashed';

/** null: the next request loads the model again. The fault of a thread ends the program or repeats at once. */
export function lossOf(error: unknown): EngineLoss | null {
  if (!(error instanceof RuvLLMError)) return null;
  if (error.code === 'engine_stalled') return 'stalled';
  return error.code === 'engine_crashed' ? 'crashed' : null;
}

/** An engine that ran this long before its loss is replaced at once. */
export const STABLE_MS = 60_000;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/** Time before an engine is replaced that was lost soon after its start, so many times in a row; at once for the first. */
export function replaceDelayMs(numEarlyLosses: number): number {
  return numEarlyLosses < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (numEarlyLosses - 2), MAX_DELAY_MS);
}
