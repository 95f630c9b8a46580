import type { Schedule } from './services.ts';

/** Knows whether anybody waits for an answer of the memory, so that what can wait does. */
export interface Foreground {
  /** Runs what somebody waits for. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Nobody waits, and nobody did a moment ago. */
  isQuiet(): boolean;
  /** At once where it is quiet; else when the next answer has been given, after which no other question is as far away, or soon. */
  turn(): Promise<void>;
}

/** Longer than the pauses between the requests of one busy client. */
const QUIET_MS = 20;
/** Longest that work in the background waits for its turn: with one piece each, hundreds a second come through. */
const MAX_TURN_MS = 10;

export function createForeground(now: () => number, schedule: Schedule): Foreground {
  let numRunning = 0;
  let lastMs = -Infinity;
  let waiting: (() => void)[] = [];
  const isQuiet = (): boolean => numRunning === 0 && now() - lastMs >= QUIET_MS;
  return {
    async run(work) {
      numRunning++;
      try {
        return await work();
      } finally {
        numRunning--;
        lastMs = now();
        const turns = waiting;
        waiting = [];
        for (const go of turns) go();
      }
    },
    isQuiet,
    turn() {
      if (isQuiet()) return Promise.resolve();
      return new Promise((resolve) => {
        const cancel = schedule(resolve, MAX_TURN_MS);
        waiting.push(() => {
          cancel();
          resolve();
        });
      });
    },
  };
}
