import { RuvLLMError } from '../../core/errors.ts';

/** Work in pieces: whoever runs it decides after each whether to go on, wait or stop. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** All pieces at once. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
  }
}

/** Longer than this nobody who shares the thread waits. */
const MAX_BUSY_MS = 10;

/** Piece by piece with pauses, in which messages arrive; throws `aborted` at the piece after the signal, with nothing done. */
export async function runStepsWithPauses<T>(
  steps: Steps<T>,
  { signal, now, what }: { readonly signal: AbortSignal; readonly now: () => number; readonly what: string },
): Promise<T> {
  let busySince = now();
  for (;;) {
    if (signal.aborted) throw new RuvLLMError('aborted', `${what} was cancelled: what was in use stays in use`);
    const { done, value } = steps.next();
    if (done) return value as T;
    if (now() - busySince < MAX_BUSY_MS) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    busySince = now();
  }
}
