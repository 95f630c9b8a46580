/** One answered request, as feedback can still name it. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly tenant: string;
  readonly model: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}

/** The last requests of each tenant. */
export interface RequestLog {
  add(request: LoggedRequest): void;
  /** null when it is unknown, forgotten or somebody else's. */
  find(tenant: string, requestId: string): LoggedRequest | null;
}

/** Tenants beyond this many push the one longest silent out. */
const MAX_TENANTS = 10_000;

export function createRequestLog(maxPerTenant: number): RequestLog {
  /** The order of a Map is that of insertion: the first entry is the oldest. */
  const tenants = new Map<string, Map<string, LoggedRequest>>();
  return {
    add(request) {
      const requests = tenants.get(request.tenant) ?? new Map<string, LoggedRequest>();
      tenants.delete(request.tenant);
      tenants.set(request.tenant, requests);
      requests.set(request.requestId, request);
      if (requests.size > maxPerTenant) requests.delete(requests.keys().next().value!);
      if (tenants.size > MAX_TENANTS) tenants.delete(tenants.keys().next().value!);
    },
    find: (tenant, requestId) => tenants.get(tenant)?.get(requestId) ?? null,
  };
}
