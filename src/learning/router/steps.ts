import { RuvLLMError } from '../../core/errors.ts';

/** Work in steps: the caller decides after each whether to continue, wait or stop. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps without a pause. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
  }
}

/** Longest time without a pause, because other work shares the thread. */
const MAX_BUSY_MS = 10;

/** Runs the steps with pauses, in which messages arrive; throws `aborted` at the step after the signal. */
export async function runStepsWithPauses<T>(
  steps: Steps<T>,
  { signal, now, what }: { readonly signal: AbortSignal; readonly now: () => number; readonly what: string },
): Promise<T> {
  let busySince = now();
  for (;;) {
    if (signal.aborted) throw new RuvLLMError('aborted', `${what} was cancelled; the active version stays`);
    const { done, value } = steps.next();
    if (done) return value as T;
    if (now() - busySince < MAX_BUSY_MS) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    busySince = now();
  }
}
