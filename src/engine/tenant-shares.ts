/** How much each tenant was served while it had work: whoever got least is next. */
export interface TenantShares {
  /** A request of this tenant has come. */
  enter(tenant: string): void;
  /** A request of this tenant has gone. */
  leave(tenant: string): void;
  /** Tokens were computed for it. */
  charge(tenant: string, numTokens: number): void;
  servedTokens(tenant: string): number;
  numRequests(tenant: string): number;
}

/** Virtual token counters: one who comes back starts level with the least served, not with credit for time away. */
export function createTenantShares(): TenantShares {
  const active = new Map<string, { servedTokens: number; numRequests: number }>();

  function leastServed(): number {
    let least = Infinity;
    for (const { servedTokens } of active.values()) least = Math.min(least, servedTokens);
    return least === Infinity ? 0 : least;
  }

  return {
    enter(tenant) {
      const known = active.get(tenant);
      if (known === undefined) active.set(tenant, { servedTokens: leastServed(), numRequests: 1 });
      else known.numRequests++;
    },
    leave(tenant) {
      const known = active.get(tenant)!;
      if (--known.numRequests === 0) active.delete(tenant); // or names of tenants would pile up for ever
    },
    charge(tenant, numTokens) {
      const known = active.get(tenant);
      if (known !== undefined) known.servedTokens += numTokens;
    },
    servedTokens: (tenant) => active.get(tenant)?.servedTokens ?? 0,
    numRequests: (tenant) => active.get(tenant)?.numRequests ?? 0,
  };
}
