/** Time as the server needs it; a test brings its own. */
export interface Clock {
  /** Milliseconds on a clock that does not jump. */
  now(): number;
  /** Milliseconds since 1970. */
  wallClock(): number;
  /** Calls `ring` once after `delayMs`; the function returned takes it back. */
  setTimer(delayMs: number, ring: () => void): () => void;
}

/** The clock of the process. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallClock: () => Date.now(),
  setTimer(delayMs, ring) {
    const timer = setTimeout(ring, delayMs) as unknown as { unref?: () => void };
    timer.unref?.();
    return () => clearTimeout(timer as unknown as number);
  },
};

/** What `work` gives, or null when `delayMs` have passed first; the work goes on. */
export async function within<T>(clock: Clock, delayMs: number, work: Promise<T>): Promise<{ value: T } | null> {
  let cancel = (): void => {};
  const late = new Promise<null>((resolve) => (cancel = clock.setTimer(delayMs, () => resolve(null))));
  try {
    return await Promise.race([work.then((value) => ({ value })), late]);
  } finally {
    cancel();
  }
}
