import { refusal } from '../errors.ts';

/** Who watches a stream that never ends by itself: only so many at a time. */
export interface Watchers {
  readonly numWatchers: number;
  /** Throws a 429; the function returned ends the stay and may be called twice. */
  enter(): () => void;
}

/** Each takes a snapshot a second and a socket. */
const MAX_WATCHERS = 64;

export function createWatchers(): Watchers {
  const inside = new Set<object>();
  return {
    get numWatchers() {
      return inside.size;
    },
    enter() {
      if (inside.size >= MAX_WATCHERS) {
        throw refusal(429, 'too_many_requests', `${inside.size} streams are watched, at most ${MAX_WATCHERS} may be`, {
          type: 'rate_limit_error',
          retryAfterSeconds: 5,
        });
      }
      const stay = {};
      inside.add(stay);
      return () => void inside.delete(stay);
    },
  };
}
