import { RuvLLMError } from '../core/errors.ts';

/** The body of one request while it is in progress. */
export interface HeldBody {
  /** Counts bytes that have arrived; throws a 503 beyond the limits. */
  add(numBytes: number): void;
  release(): void;
}

/** Bounds the bodies in memory: requests in progress, each with the largest body, would need many times the memory of a gateway. */
export function createHeldBytes(maxBytes: number): { open(tenant: string): HeldBody } {
  /** So that one tenant, with slow uploads, cannot keep others out. */
  const maxOfTenant = Math.ceil(maxBytes / 2);
  const ofTenants = new Map<string, number>();
  let total = 0;

  return {
    open(tenant) {
      let own = 0;
      const count = (numBytes: number): number => {
        const sum = (ofTenants.get(tenant) ?? 0) + numBytes;
        if (sum === 0) ofTenants.delete(tenant);
        else ofTenants.set(tenant, sum);
        own += numBytes;
        total += numBytes;
        return sum;
      };
      return {
        add(numBytes) {
          const sum = count(numBytes);
          if (sum <= maxOfTenant && total <= maxBytes) return;
          const message =
            sum > maxOfTenant
              ? `the bodies of your requests in progress have ${sum} bytes, at most ${maxOfTenant} may be held`
              : `the bodies of all requests in progress have ${total} bytes, at most ${maxBytes} may be held`;
          throw new RuvLLMError('overloaded', message, { data: { retryAfterSeconds: 2 }, isRetryable: true });
        },
        release: () => void count(-own),
      };
    },
  };
}
