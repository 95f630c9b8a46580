import type { Schedule } from './services.ts';

/** Knows whether anybody waits for an answer of the memory, so that what can wait does. */
export interface Foreground {
  /** Runs what somebody waits for. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Nobody waits, and nobody did a moment ago. */
  isQuiet(): boolean;
  /**
   * At once where it is quiet; else after the next answer and what its caller does at once, for then no other question is as far away, or soon. One at a
   * time: what is done in a turn is small, and the sum of several is not.
   */
  turn(): Promise<void>;
  /** Lets all go whose turn has not come: somebody waits for their work, and no timer may be left to wake them. */
  release(): void;
}

/** Longer than the pauses between the requests of one busy client. */
const QUIET_MS = 20;
/** Longest that work in the background waits for its turn. */
const MAX_TURN_MS = 10;
/** Not in the same turn of the event loop, where it would run before whoever was answered goes on. */
const AFTER_MS = 0;

const AT_ONCE = { quiet: 16, busy: 2, ofQueue: 1 / 64 };

/**
 * How many of those that wait are written in one turn: a question that comes meanwhile waits for all of them, and they are made on the
 * thread that serves. Of a queue that grows all the same a part, so that it never comes to its end.
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
