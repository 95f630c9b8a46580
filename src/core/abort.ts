import { RuvLLMError } from './errors.ts';

interface Subscribers {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const subscribers = new WeakMap<AbortSignal, Subscribers>();

/**
 * Calls back once when the signal aborts, at once if it has; returns an unsubscribe function. All callbacks share one listener: a
 * request with 16 answers would otherwise have 16, and Node warns of a leak from 11 on.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => {};
  }
  let own = subscribers.get(signal);
  if (own === undefined) {
    const all = new Set<() => void>();
    own = {
      callbacks: all,
      listener() {
        for (const one of all) if (all.delete(one)) one();
      },
    };
    subscribers.set(signal, own);
  }
  const { callbacks, listener } = own;
  // A function of its own: the same callback may subscribe twice.
  const once = (): void => callback();
  callbacks.add(once);
  if (callbacks.size === 1) signal.addEventListener('abort', listener);
  return () => {
    if (callbacks.delete(once) && callbacks.size === 0) signal.removeEventListener('abort', listener);
  };
}

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
  const unlink = onAbort(parent, () => controller.abort(parent.reason));
  return {
    signal: controller.signal,
    abort: () => controller.abort(ENDED),
    unlink,
  };
}

/** The error of a call whose signal fired. */
export function abortError(signal: AbortSignal): RuvLLMError {
  return new RuvLLMError('aborted', 'aborted by the caller', { cause: signal.reason });
}

/** The result, unless the signal fires first. */
export async function raceAbort<T>(result: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return result;
  let unsubscribe = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    unsubscribe = onAbort(signal, () => reject(abortError(signal)));
  });
  try {
    return await Promise.race([result, aborted]);
  } finally {
    unsubscribe();
  }
}

/** Waits until `subscribe` calls back or the signal aborts; `subscribe` returns its cleanup. */
export async function waitFor(signal: AbortSignal, subscribe: (wake: () => void) => () => void): Promise<void> {
  if (signal.aborted) return;
  let wake = (): void => {};
  const called = new Promise<void>((resolve) => (wake = resolve));
  const unsubscribe = subscribe(wake);
  const forget = onAbort(signal, wake);
  await called;
  unsubscribe();
  // The signal outlives the wait: one callback per wait would pile up.
  forget();
}
