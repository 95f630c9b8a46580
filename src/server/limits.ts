import { integerOption, resolveOptions } from '../core/options.ts';
import { type RequestLimits, requestLimitReaders } from '../runtime/requests/limits.ts';

/** Bounds on what one request and one tenant may take; every field has a default. */
export interface ServerLimits extends RequestLimits {
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
  /** Milliseconds of silence after which a stream gets a comment. Default 15 000. */
  readonly keepAliveMs: number;
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
    ...requestLimitReaders,
    maxBodyBytes: integerOption(4 * MEBIBYTE, 1, 256 * MEBIBYTE),
    maxJsonDepth: integerOption(64, 1, 1000),
    maxJsonValues: integerOption(200_000, 1, 10_000_000),
    maxMessages: integerOption(2048, 1, 100_000),
    maxChoices: integerOption(16, 1, 256),
    keepAliveMs: integerOption(15_000, 10, MAX_MS),
    maxStoredResponses: integerOption(1000, 0, 1_000_000),
    maxStoredBytes: integerOption(32 * MEBIBYTE, 0, 2 ** 40),
    maxStoredBytesInAll: integerOption(256 * MEBIBYTE, 0, 2 ** 40),
    storedResponseMs: integerOption(86_400_000, 1, MAX_MS),
  });
}
