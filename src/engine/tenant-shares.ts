/** Tokens served per tenant while it had work; the least-served tenant is next. */
export interface TenantShares {
  /** Called when a request of this tenant arrives. */
  enter(tenant: string): void;
  /** Called when a request of this tenant ends. */
  leave(tenant: string): void;
  /** Counts tokens computed for it. */
  charge(tenant: string, numTokens: number): void;
  servedTokens(tenant: string): number;
  numRequests(tenant: string): number;
}

/** Virtual token counters: a returning tenant starts level with the least served, without credit for its idle time. */
export function createTenantShares(): TenantShares {
  const active = new Map<string, { servedTokens: number; numRequests: number }>();

  function leastServed(): number {
    let least = Infinity;
    for (const { servedTokens } of active.values()) least = Math.min(least, servedTokens);
    return least === Infinity ? 0 : least;
  }

  return {
    enter(tenant) {
      const share = active.get(tenant);
      if (share === undefined) active.set(tenant, { servedTokens: leastServed(), numRequests: 1 });
      else share.numRequests++;
    },
    leave(tenant) {
      const share = active.get(tenant)!;
      if (--share.numRequests === 0) active.delete(tenant); // otherwise tenant names would pile up
    },
    charge(tenant, numTokens) {
      const share = active.get(tenant);
      if (share !== undefined) share.servedTokens += numTokens;
    },
    servedTokens: (tenant) => active.get(tenant)?.servedTokens ?? 0,
    numRequests: (tenant) => active.get(tenant)?.numRequests ?? 0,
  };
}
