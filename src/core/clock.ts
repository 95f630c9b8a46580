/** The time source of the server; tests provide their own. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Milliseconds since 1970. */
  wallClock(): number;
  /** Calls `ring` once after `delayMs`; returns a function that cancels the timer. */
  setTimer(delayMs: number, ring: () => void): () => void;
}

/** The process clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallClock: () => Date.now(),
  setTimer(delayMs, ring) {
    const timer = setTimeout(ring, delayMs) as unknown as { unref?: () => void };
    timer.unref?.();
    return () => clearTimeout(timer as unknown as number);
  },
};

/** The result of `work`, or null if `delayMs` pass first; the work continues. */
export async function within<T>(clock: Clock, delayMs: number, work: Promise<T>): Promise<{ value: T } | null> {
  let cancel = (): void => {};
  const late = new Promise<null>((resolve) => (cancel = clock.setTimer(delayMs, () => resolve(null))));
  try {
    return await Promise.race([work.then((value) => ({ value })), late]);
  } finally {
    cancel();
  }
}

/** Resolves after the time, or at once when the signal is aborted. */
export function delay(clock: Pick<Clock, 'setTimer'>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.setTimer(ms, end);
    signal.addEventListener('abort', end, { once: true });
  });
}
