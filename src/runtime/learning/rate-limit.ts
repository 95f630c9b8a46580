import { RuvLLMError } from '../../core/errors.ts';

/** A token bucket per key. */
export function createRateLimit(now: () => number, { burst, perMinute }: { burst: number; perMinute: number }) {
  const buckets = new Map<string, { left: number; atMs: number }>();
  return {
    forget: (key: string): void => void buckets.delete(key),
    /** Throws `overloaded` with the time to wait. */
    take(key: string): void {
      const nowMs = now();
      const bucket = buckets.get(key) ?? { left: burst, atMs: nowMs };
      const left = Math.min(burst, bucket.left + (Math.max(0, nowMs - bucket.atMs) * perMinute) / 60_000);
      buckets.delete(key);
      buckets.set(key, { left: Math.max(0, left - 1), atMs: nowMs });
      // The least recently used bucket is full again anyway.
      if (buckets.size > 10_000) buckets.delete(buckets.keys().next().value!);
      if (left >= 1) return;
      const retryAfterMs = Math.ceil(((1 - left) * 60_000) / perMinute);
      buckets.set(key, { left, atMs: nowMs });
      throw new RuvLLMError(
        'overloaded',
        `more than ${perMinute} ratings per minute; try again in ${retryAfterMs} ms`,
        {
          data: { perMinute, retryAfterMs },
          isRetryable: true,
        },
      );
    },
  };
}
