import { integerOption, resolveOptions } from '../../core/options.ts';

export interface SessionOptions {
  /** How long a session may be unused before it is forgotten. Default 24 hours. */
  readonly idleMs?: number;
  /** Turns that are kept of one. Default 200. */
  readonly maxTurns?: number;
  /** Sessions that are kept in memory. Default 4096. */
  readonly cacheEntries?: number;
}

export function resolveSessionOptions(options?: SessionOptions): Readonly<Required<SessionOptions>> {
  return resolveOptions<Required<SessionOptions>>('sessions', options, {
    idleMs: integerOption(86_400_000, 1, 3_650 * 86_400_000),
    // What trimming deletes in one call.
    maxTurns: integerOption(200, 1, 100_000),
    cacheEntries: integerOption(4096, 1, 1_000_000),
  });
}
