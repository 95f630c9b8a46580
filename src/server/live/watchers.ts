import { refusal } from '../errors.ts';

/** Clients of endless streams; their number is limited. */
export interface Watchers {
  readonly numWatchers: number;
  /** Adds a watcher; throws a 429 at the limit. Returns a function that removes it, which may be called twice. */
  enter(): () => void;
}

/** Each costs a socket and a snapshot per second. */
const MAX_WATCHERS = 64;

export function createWatchers(): Watchers {
  const watchers = new Set<object>();
  return {
    get numWatchers() {
      return watchers.size;
    },
    enter() {
      if (watchers.size >= MAX_WATCHERS) {
        throw refusal(
          429,
          'too_many_requests',
          `${watchers.size} event streams are open; the limit is ${MAX_WATCHERS}`,
          {
            type: 'rate_limit_error',
            retryAfterSeconds: 5,
          },
        );
      }
      const watcher = {};
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
  };
}
