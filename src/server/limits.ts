import { integerOption, resolveOptions } from '../core/options.ts';
import { type RequestLimits, requestLimitReaders } from '../runtime/requests/limits.ts';

/** Limits per request and per tenant; each has a default. */
export interface ServerLimits extends RequestLimits {
  /** Bytes of a request body. Default 4 MiB. */
  readonly maxBodyBytes: number;
  /** Nesting depth of a body. Default 64. */
  readonly maxJsonDepth: number;
  /** Values in a body at all levels; lists, objects and keys count six each. Default 200,000. */
  readonly maxJsonValues: number;
  /** Messages of a conversation. Default 2048. */
  readonly maxMessages: number;
  /** Answers of a request: `n` times the number of prompts. Default 16. */
  readonly maxChoices: number;
  /** Milliseconds without an event after which a stream sends a keep-alive. Default 15,000. */
  readonly keepAliveMs: number;
  /** Stored responses, conversations and chat completions per tenant. Default 1000. */
  readonly maxStoredResponses: number;
  /** Bytes of a tenant's stored objects; a response includes its conversation. Default 32 MiB. */
  readonly maxStoredBytes: number;
  /** Bytes of all stored objects. Default 256 MiB. */
  readonly maxStoredBytesInAll: number;
  /** Milliseconds after its last change for which an object is stored. Default one day. */
  readonly storedResponseMs: number;
  /** Bytes of a file of batch requests. Default 32 MiB. */
  readonly maxBatchFileBytes: number;
  /** Requests in a batch. Default 50,000. */
  readonly maxBatchLines: number;
  /** Bytes of a tenant's files and of the results of its batches. Default 512 MiB. */
  readonly maxBatchBytes: number;
  /** Batches of a tenant that have not ended. Default 16. */
  readonly maxOpenBatches: number;
  /** Requests of all batches that run at the same time. Default 4. */
  readonly batchConcurrency: number;
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
    // Twice as much, for escaped quotes, fits into one transaction of the memory.
    maxBatchFileBytes: integerOption(32 * MEBIBYTE, 1, 32 * MEBIBYTE),
    maxBatchLines: integerOption(50_000, 1, 1_000_000),
    maxBatchBytes: integerOption(512 * MEBIBYTE, 0, 2 ** 40),
    maxOpenBatches: integerOption(16, 0, 10_000),
    batchConcurrency: integerOption(4, 1, 1000),
  });
}
