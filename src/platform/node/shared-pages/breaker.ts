/** Suspends operations on a storage that fails, so that requests do not wait for it each time. */
export interface Breaker {
  readonly isOpen: boolean;
  onSuccess(): void;
  onFailure(): void;
}

const MAX_FAILURES = 3;
const PAUSE_MS = 30_000;

/** After a pause one failure suffices to suspend them again. */
export function createBreaker(now: () => number): Breaker {
  let numFailures = 0;
  let untilMs = -Infinity;
  return {
    get isOpen() {
      return now() < untilMs;
    },
    onSuccess() {
      numFailures = 0;
    },
    onFailure() {
      if (++numFailures < MAX_FAILURES) return;
      numFailures = MAX_FAILURES - 1;
      untilMs = now() + PAUSE_MS;
    },
  };
}
