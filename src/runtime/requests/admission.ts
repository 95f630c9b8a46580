import { type Clock, within } from '../../core/clock.ts';
import { type ErrorCode, RuvLLMError } from '../../core/errors.ts';
import type { RequestLimits } from './limits.ts';

type GateLimits = Pick<RequestLimits, 'maxRequests' | 'maxRequestsPerTenant' | 'requestsPerMinute' | 'burst'>;

/** Lets requests in: how many at a time, and how often. */
export interface Admission {
  readonly numRequests: number;
  /** Admits a request or throws 429 or 503; the function returned ends its stay and may be called twice. */
  enter(tenant: string): () => void;
  /** Forgets the rate of a tenant without requests. */
  forget(tenant: string): void;
  /** Whether new requests should go elsewhere; they are let in until `close`. */
  readonly isLeaving: boolean;
  leave(): void;
  /** From here on new requests are rejected. */
  close(): void;
  /** Resolves when no request is running, or after `deadlineMs`. */
  empty(deadlineMs: number): Promise<void>;
}

interface Tenant {
  numRequests: number;
  tokens: number;
  filledMs: number;
}

/** Tenants whose bucket is full again are forgotten; this many are looked at whenever the table has grown. */
const MAX_IDLE_TENANTS = 10_000;

/** Requests that other processes with the same limits admitted. */
export interface OutsideRequests {
  numRequests(tenant: string): number;
  /** Requests admitted since the last call. */
  takeAdmitted(tenant: string): number;
}

const NONE: OutsideRequests = { numRequests: () => 0, takeAdmitted: () => 0 };

export function createAdmission(limits: GateLimits, clock: Clock, outside: OutsideRequests = NONE): Admission {
  const { maxRequests, maxRequestsPerTenant, requestsPerMinute, burst } = limits;
  const tenants = new Map<string, Tenant>();
  let numRequests = 0;
  let isLeaving = false;
  let isClosed = false;
  let onEmpty = (): void => {};

  function refill(tenant: Tenant): void {
    const nowMs = clock.now();
    tenant.tokens = Math.min(burst, tenant.tokens + ((nowMs - tenant.filledMs) * requestsPerMinute) / 60_000);
    tenant.filledMs = nowMs;
  }

  function forgetIdle(): void {
    for (const [name, tenant] of tenants) {
      refill(tenant);
      if (tenant.numRequests === 0 && tenant.tokens >= burst) tenants.delete(name);
    }
  }

  function find(name: string): Tenant {
    const known = tenants.get(name);
    if (known !== undefined) return known;
    if (tenants.size >= MAX_IDLE_TENANTS) forgetIdle();
    const tenant = { numRequests: 0, tokens: burst, filledMs: clock.now() };
    tenants.set(name, tenant);
    return tenant;
  }

  const refuse = (code: ErrorCode, message: string, retryAfterSeconds: number): RuvLLMError =>
    new RuvLLMError(code, message, { data: { retryAfterSeconds }, isRetryable: true });

  return {
    get numRequests() {
      return numRequests;
    },
    get isLeaving() {
      return isLeaving;
    },
    enter(name) {
      if (isClosed) throw refuse('shutting_down', 'the server is shutting down', 5);
      if (numRequests >= maxRequests) {
        throw refuse('overloaded', `${numRequests} requests are in progress, at most ${maxRequests} may be`, 2);
      }
      const tenant = find(name);
      const numOwn = tenant.numRequests + outside.numRequests(name);
      if (numOwn >= maxRequestsPerTenant) {
        const message = `${numOwn} of your requests are in progress, at most ${maxRequestsPerTenant} may be`;
        throw refuse('too_many_requests', message, 1);
      }
      refill(tenant);
      // At most a burst of debt: a tenant must not wait for minutes because of one moment.
      tenant.tokens = Math.max(-burst, tenant.tokens - outside.takeAdmitted(name));
      if (tenant.tokens < 1) {
        const waitSeconds = Math.ceil(((1 - tenant.tokens) * 60) / requestsPerMinute);
        const message = `more than ${requestsPerMinute} requests per minute; the next is allowed in ${waitSeconds} s`;
        throw refuse('rate_limit_exceeded', message, waitSeconds);
      }
      tenant.tokens--;
      tenant.numRequests++;
      numRequests++;
      let isInside = true;
      return () => {
        if (!isInside) return;
        isInside = false;
        tenant.numRequests--;
        numRequests--;
        if (numRequests === 0) onEmpty();
      };
    },
    forget(name) {
      if (tenants.get(name)?.numRequests === 0) tenants.delete(name);
    },
    leave() {
      isLeaving = true;
    },
    close() {
      isLeaving = true;
      isClosed = true;
    },
    async empty(deadlineMs) {
      if (numRequests > 0) await within(clock, deadlineMs, new Promise<void>((resolve) => (onEmpty = resolve)));
    },
  };
}
