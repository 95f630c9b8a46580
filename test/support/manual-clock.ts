import type { Clock } from '../../src/core/clock.ts';

export interface ManualClock extends Clock {
  /** Advances time and fires due timers in order. */
  advance(ms: number): void;
  readonly numTimers: number;
}

/** Time that stands still until it is advanced. */
export function createManualClock(): ManualClock {
  let nowMs = 0;
  let timers: { dueMs: number; ring: () => void }[] = [];
  return {
    now: () => nowMs,
    wallClock: () => 1_700_000_000_000 + nowMs,
    setTimer(delayMs, ring) {
      const timer = { dueMs: nowMs + delayMs, ring };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    get numTimers() {
      return timers.length;
    },
    advance(ms) {
      nowMs += ms;
      for (;;) {
        const due = timers.filter(({ dueMs }) => dueMs <= nowMs).sort((a, b) => a.dueMs - b.dueMs)[0];
        if (due === undefined) return;
        timers = timers.filter((other) => other !== due);
        due.ring();
      }
    },
  };
}

/** Lets everything that is ready run. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
