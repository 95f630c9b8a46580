import type { RunHooks } from '../../../src/learning/training/training-run.ts';

/** Prints what happens to stderr, with the seconds since the start. */
export function createProgress(name: string) {
  const startMs = performance.now();
  return (text: string): void => console.error(`${name}: ${text} (${((performance.now() - startMs) / 1000).toFixed(0)} s)`); // prettier-ignore
}

/** Hooks of a run that prints its steps and saves nothing. */
export function runHooks(
  name: string,
  evaluate: RunHooks['evaluate'] = null,
  signal: AbortSignal = new AbortController().signal,
): RunHooks {
  const print = createProgress(name);
  return {
    evaluate,
    save: () => {},
    saveEveryMs: Infinity,
    onStep({ step, numSteps, loss }) {
      if (loss !== null) print(`step ${step} of ${numSteps}, loss ${loss.toFixed(4)}`);
    },
    signal,
    now: () => performance.now(),
  };
}
