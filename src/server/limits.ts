import { integerOption, numberOption, resolveOptions } from '../core/options.ts';

/** Bounds on what one request and one tenant may take; every field has a default. */
export interface ServerLimits {
  /** Bytes of a request body. Default 4 MiB. */
  readonly maxBodyBytes: number;
  /** How deep lists and objects of a body may nest. Default 64. */
  readonly maxJsonDepth: number;
  /** Values in a body, all levels together; lists, objects and keys count six each. Default 200 000. */
  readonly maxJsonValues: number;
  /** Messages of one conversation. Default 2048. */
  readonly maxMessages: number;
  /** Answers of one request: `n`, times the prompts where there are several. Default 16. */
  readonly maxChoices: number;
  /** Most tokens of one answer. Default 2^20: in effect the model's context. */
  readonly maxTokens: number;
  /** Characters of a prompt per token of the context: more is refused before it is tokenized. Texts have two to five. Default 32. */
  readonly maxCharsPerToken: number;
  /** Requests that generate at a time, all tenants together. Default 256. */
  readonly maxRequests: number;
  /** Requests of one tenant that generate at a time. Default 64. */
  readonly maxRequestsPerTenant: number;
  /** Requests of one tenant per minute, on average. Default 6000. */
  readonly requestsPerMinute: number;
  /** Requests of one tenant that may come at once before the rate counts. Default 200. */
  readonly burst: number;
  /** Milliseconds a request waits for its model to be loaded before it gets a 503. Default 120 000. */
  readonly modelWaitMs: number;
  /** Milliseconds of silence after which a stream gets a comment. Default 15 000. */
  readonly keepAliveMs: number;
  /** Milliseconds a stream waits for its first token, so that an early failure still has a status. Default 1000. */
  readonly firstEventMs: number;
  /** Requests per tenant that feedback can still name. Default 1000. */
  readonly maxRememberedRequests: number;
  /** Responses per tenant that can still be read or continued. Default 1000. */
  readonly maxStoredResponses: number;
  /** Bytes of the stored responses of one tenant, with the conversations before them. Default 32 MiB. */
  readonly maxStoredBytes: number;
  /** Bytes of all stored responses. Default 256 MiB. */
  readonly maxStoredBytesInAll: number;
  /** Milliseconds a response is stored. Default one day. */
  readonly storedResponseMs: number;
}

const MEBIBYTE = 2 ** 20;
const MAX_MS = 2 ** 31 - 1;

/** Checks limits and fills in the defaults. */
export function resolveServerLimits(limits?: Partial<ServerLimits>): ServerLimits {
  return resolveOptions<ServerLimits>('server limits', limits, {
    maxBodyBytes: integerOption(4 * MEBIBYTE, 1, 256 * MEBIBYTE),
    maxJsonDepth: integerOption(64, 1, 1000),
    maxJsonValues: integerOption(200_000, 1, 10_000_000),
    maxMessages: integerOption(2048, 1, 100_000),
    maxChoices: integerOption(16, 1, 256),
    maxTokens: integerOption(2 ** 20, 1, 2 ** 24),
    maxCharsPerToken: numberOption(32, 1, 1000),
    maxRequests: integerOption(256, 1, 100_000),
    maxRequestsPerTenant: integerOption(64, 1, 100_000),
    requestsPerMinute: numberOption(6000, 0.1, 10_000_000),
    burst: integerOption(200, 1, 1_000_000),
    modelWaitMs: integerOption(120_000, 0, MAX_MS),
    keepAliveMs: integerOption(15_000, 10, MAX_MS),
    firstEventMs: integerOption(1000, 0, MAX_MS),
    maxRememberedRequests: integerOption(1000, 1, 1_000_000),
    maxStoredResponses: integerOption(1000, 0, 1_000_000),
    maxStoredBytes: integerOption(32 * MEBIBYTE, 0, 2 ** 40),
    maxStoredBytesInAll: integerOption(256 * MEBIBYTE, 0, 2 ** 40),
    storedResponseMs: integerOption(86_400_000, 1, MAX_MS),
  });
}
