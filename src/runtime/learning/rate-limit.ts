import { RuvLLMError } from '../../core/errors.ts';

/** Lets so many through at once, and as many a minute: a flood of opinions is no feedback. */
export function createRateLimit(now: () => number, { burst, perMinute }: { burst: number; perMinute: number }) {
  const buckets = new Map<string, { left: number; atMs: number }>();
  return {
    /** `overloaded` with when to come again. */
    take(key: string): void {
      const nowMs = now();
      const bucket = buckets.get(key) ?? { left: burst, atMs: nowMs };
      const left = Math.min(burst, bucket.left + (Math.max(0, nowMs - bucket.atMs) * perMinute) / 60_000);
      buckets.delete(key);
      buckets.set(key, { left: Math.max(0, left - 1), atMs: nowMs });
      // The one that asked least lately is full again anyway.
      if (buckets.size > 10_000) buckets.delete(buckets.keys().next().value!);
      if (left >= 1) return;
      const retryAfterMs = Math.ceil(((1 - left) * 60_000) / perMinute);
      buckets.set(key, { left, atMs: nowMs });
      throw new RuvLLMError('overloaded', `more than ${perMinute} feedbacks a minute; again in ${retryAfterMs} ms`, {
        data: { perMinute, retryAfterMs },
        isRetryable: true,
      });
    },
  };
}
