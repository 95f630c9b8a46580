import { RuvLLMError } from './errors.ts';

/** An abort controller that a parent signal aborts too. */
export interface LinkedAbort {
  readonly signal: AbortSignal;
  abort(): void;
  /** Detaches from the parent, which may live longer; call it when the work has ended. */
  unlink(): void;
}

/** Shared: without a reason, every request would create an exception with a stack when it ends. */
const ENDED = new RuvLLMError('aborted', 'ended by the server');

/** Not `AbortSignal.any`: it holds its sources weakly, and a lost abort leaves a sequence running. */
export function linkAbort(parent: AbortSignal): LinkedAbort {
  const controller = new AbortController();
  const abort = (): void => controller.abort(parent.reason);
  if (parent.aborted) abort();
  else parent.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    abort: () => controller.abort(ENDED),
    unlink: () => parent.removeEventListener('abort', abort),
  };
}

/** The error of a call whose signal fired. */
export function abortError(signal: AbortSignal): RuvLLMError {
  return new RuvLLMError('aborted', 'aborted by the caller', { cause: signal.reason });
}

/** The result, unless the signal fires first. */
export async function raceAbort<T>(result: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return result;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(abortError(signal));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Waits until `subscribe` calls back or the signal aborts; `subscribe` returns its cleanup. */
export async function waitFor(signal: AbortSignal, subscribe: (wake: () => void) => () => void): Promise<void> {
  if (signal.aborted) return;
  let wake = (): void => {};
  const called = new Promise<void>((resolve) => (wake = resolve));
  const unsubscribe = subscribe(wake);
  signal.addEventListener('abort', wake, { once: true });
  await called;
  unsubscribe();
  // The signal outlives the wait: one listener per wait would pile up.
  signal.removeEventListener('abort', wake);
}
