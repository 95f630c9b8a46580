import { integerOption, numberOption, resolveOptions } from '../core/options.ts';

/** Limits of a gateway; each has a default. */
export interface GatewayLimits {
  /** Bytes of a request body. Default 4 MiB. */
  readonly maxBodyBytes: number;
  /** Bytes of the bodies of requests in progress, across all tenants; one tenant may have half of them. Default 256 MiB. */
  readonly maxHeldBytes: number;
  /** Requests in progress, across all tenants and nodes. Default 1024. */
  readonly maxRequests: number;
  /** Requests of one tenant in progress, across all nodes. Default 128. */
  readonly maxRequestsPerTenant: number;
  /** Average requests of one tenant per minute, across all nodes. Default 12 000. */
  readonly requestsPerMinute: number;
  /** Requests that one tenant may send at once before the rate applies. Default 400. */
  readonly burst: number;
  /** Milliseconds between two questions for the health of a node. Default 1000. */
  readonly healthIntervalMs: number;
  /** Milliseconds that a request waits while no node is up. Default 5000. */
  readonly nodeWaitMs: number;
  /** Milliseconds until an answer begins that a node can begin at once: a stream, or one that no model gives. Default 180,000. */
  readonly firstByteMs: number;
  /** Milliseconds until a node has given an answer that is no stream. Default 900,000. */
  readonly answerMs: number;
}

/** Checks limits and fills in the defaults. */
export function resolveGatewayLimits(limits?: Partial<GatewayLimits>): GatewayLimits {
  return resolveOptions<GatewayLimits>('gateway limits', limits, {
    maxBodyBytes: integerOption(4 * 2 ** 20, 1, 256 * 2 ** 20),
    maxHeldBytes: integerOption(256 * 2 ** 20, 1, 2 ** 40),
    maxRequests: integerOption(1024, 1, 100_000),
    maxRequestsPerTenant: integerOption(128, 1, 100_000),
    requestsPerMinute: numberOption(12_000, 0.1, 10_000_000),
    burst: integerOption(400, 1, 1_000_000),
    healthIntervalMs: integerOption(1000, 10, 3_600_000),
    nodeWaitMs: integerOption(5000, 0, 600_000),
    firstByteMs: integerOption(180_000, 10, 86_400_000),
    answerMs: integerOption(900_000, 10, 86_400_000),
  });
}
