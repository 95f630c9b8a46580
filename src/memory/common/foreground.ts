import type { Schedule } from './services.ts';

/** Lets background work give way to requests of the memory. */
export interface Foreground {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** No request is running or ended just now. */
  isQuiet(): boolean;
  /**
   * Resolves at once when quiet, otherwise after the next answer and its caller's reaction, when the next request is furthest
   * away, or soon. One turn at a time, because each is small but several are not.
   */
  turn(): Promise<void>;
  /** Ends all waits: a caller needs their work now. */
  release(): void;
}

/** Longer than the pauses between the requests of one busy client. */
const QUIET_MS = 20;
/** Longest wait for a turn. */
const MAX_TURN_MS = 10;
/** A later turn of the event loop, so that the answered caller continues first. */
const AFTER_MS = 0;

const AT_ONCE = { quiet: 16, busy: 2, ofQueue: 1 / 64 };

/**
 * Entries to write in one turn: a request that arrives meanwhile waits for all of them. A share of a long queue, so that it
 * cannot grow without end.
 */
export function countAtOnce({ isQuiet }: Pick<Foreground, 'isQuiet'>, numWaiting: number): number {
  return Math.max(isQuiet() ? AT_ONCE.quiet : AT_ONCE.busy, Math.floor(numWaiting * AT_ONCE.ofQueue));
}

export function createForeground(now: () => number, schedule: Schedule): Foreground {
  let numRunning = 0;
  let lastMs = -Infinity;
  let waiting: (() => void)[] = [];
  let cancelNext: (() => void) | null = null;
  const isQuiet = (): boolean => numRunning === 0 && now() - lastMs >= QUIET_MS;

  function planNext(): void {
    if (cancelNext !== null || numRunning > 0 || waiting.length === 0) return;
    cancelNext = schedule(() => {
      cancelNext = null;
      waiting.shift()?.();
      planNext();
    }, AFTER_MS);
  }
  function holdNext(): void {
    cancelNext?.();
    cancelNext = null;
  }

  return {
    async run(work) {
      numRunning++;
      holdNext();
      try {
        return await work();
      } finally {
        numRunning--;
        lastMs = now();
        planNext();
      }
    },
    release() {
      holdNext();
      const turns = waiting;
      waiting = [];
      for (const go of turns) go();
    },
    isQuiet,
    turn() {
      if (isQuiet()) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = schedule(() => {
          waiting = waiting.filter((one) => one !== go);
          resolve();
        }, MAX_TURN_MS);
        const go = (): void => {
          cancel();
          resolve();
        };
        waiting.push(go);
        planNext();
      });
    },
  };
}
