export interface ComputeClock {
  /** Milliseconds of wall time. */
  now(): number;
  /** Milliseconds of processor time that this process has used, all threads together. */
  usedMs(): number;
  /** Calls back later; returns a function that cancels the call. */
  after(delayMs: number, run: () => void): () => void;
}

const processClock: ComputeClock = {
  now: () => performance.now(),
  usedMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Wall time after which a thread is late however little it has run: it may be blocked, and others wait for it. */
const MAX_WALL_FACTOR = 15;

/**
 * Calls `expire` once a thread may have computed for `limitMs`; returns a function that cancels it. Wall time alone would
 * fail good work on a busy machine, where a thread waits for its turn; Node 20 does not tell the time of one thread, but
 * no thread has used more than its process.
 */
export function startComputeDeadline(
  limitMs: number,
  expire: () => void,
  clock: ComputeClock = processClock,
): () => void {
  const startMs = clock.now();
  const startUsedMs = clock.usedMs();
  let cancel = clock.after(limitMs, check);

  function check(): void {
    const leftMs = limitMs - (clock.usedMs() - startUsedMs);
    if (leftMs <= 0 || clock.now() - startMs >= MAX_WALL_FACTOR * limitMs) return expire();
    cancel = clock.after(Math.max(1, Math.ceil(leftMs)), check);
  }
  return () => cancel();
}
