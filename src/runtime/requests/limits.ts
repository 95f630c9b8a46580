import { integerOption, numberOption, type OptionReaders, resolveOptions } from '../../core/options.ts';

/** Limits on what one request and one tenant may use. */
export interface RequestLimits {
  /** Maximum tokens in one answer. Default 2^20, so that in effect the model's context is the limit. */
  readonly maxTokens: number;
  /** Characters of a prompt per token of context: longer prompts are refused before they are tokenized. Text has two to five. Default 32. */
  readonly maxCharsPerToken: number;
  /** Requests that generate at the same time, across all tenants. Default 256. */
  readonly maxRequests: number;
  /** Requests of one tenant that generate at the same time. Default 64. */
  readonly maxRequestsPerTenant: number;
  /** Average requests of one tenant per minute. Default 6000. */
  readonly requestsPerMinute: number;
  /** Requests that one tenant may send at once before the rate applies. Default 200. */
  readonly burst: number;
  /** Milliseconds that a request waits for its model to load before it fails with `overloaded`. Default 120 000. */
  readonly modelWaitMs: number;
  /** Milliseconds that a stream waits for its first event, so that an early failure still has a status. Default 1000. */
  readonly firstEventMs: number;
}

const MAX_MS = 2 ** 31 - 1;

export const requestLimitReaders: OptionReaders<RequestLimits> = {
  maxTokens: integerOption(2 ** 20, 1, 2 ** 24),
  maxCharsPerToken: numberOption(32, 1, 1000),
  maxRequests: integerOption(256, 1, 100_000),
  maxRequestsPerTenant: integerOption(64, 1, 100_000),
  requestsPerMinute: numberOption(6000, 0.1, 10_000_000),
  burst: integerOption(200, 1, 1_000_000),
  modelWaitMs: integerOption(120_000, 0, MAX_MS),
  firstEventMs: integerOption(1000, 0, MAX_MS),
};

/** Checks limits and fills in the defaults. */
export function resolveRequestLimits(limits?: Partial<RequestLimits>): RequestLimits {
  return resolveOptions<RequestLimits>('limits', limits, requestLimitReaders);
}
