import { abortError } from '../core/abort.ts';
import { deserializeError } from '../core/errors.ts';
import type { ExaminedTokens } from '../engine/examiner.ts';
import type { RequestAdapter } from '../engine/types.ts';
import type { SampledToken } from '../sampling/types.ts';
import type { EngineClient } from './engine-client.ts';

/** What scoring needs of a call. */
export interface ScoreOptions {
  readonly tenant: string;
  readonly priority: number;
  readonly timeoutMs: number | null;
  readonly cachePrefix: boolean;
  readonly signal: AbortSignal | null;
  readonly adapters: readonly RequestAdapter[];
  /** Alternatives for each token. */
  readonly numTop: number;
}

/** The log-probability of each token after those before it; the first has none. Takes a step of the engine per token. */
export async function scoreTokens(
  client: EngineClient,
  ids: readonly number[],
  { signal, numTop, tenant, priority, timeoutMs, cachePrefix, adapters }: ScoreOptions,
): Promise<readonly SampledToken[]> {
  const first: SampledToken = { tokenId: ids[0]!, logprob: null, top: [] };
  if (ids.length === 1) return [first];
  const examined = await new Promise<ExaminedTokens>((resolve, reject) => {
    const request = { tenant, priority, timeoutMs, cachePrefix, adapters, numTop: Math.max(1, numTop) };
    const call = client.examine({ ...request, promptIds: ids.slice(0, 1), labels: ids.slice(1) }, (event) => {
      if (event.type === 'examined') resolve(event.tokens);
      else if (event.type === 'failed') reject(deserializeError(event.error));
    });
    signal?.addEventListener(
      'abort',
      () => {
        call.abort();
        reject(abortError(signal));
      },
      { once: true },
    );
  });
  return [first, ...toTokens(examined, numTop)];
}

function toTokens(examined: ExaminedTokens, numTop: number): SampledToken[] {
  const { labels, labelLogits, logSumExp, maxKnown, knownIds, knownLogits } = examined;
  return Array.from(labels, (tokenId, i) => ({
    tokenId,
    logprob: labelLogits[i]! - logSumExp[i]!,
    top: Array.from({ length: numTop }, (_, rank) => ({
      tokenId: knownIds[i * maxKnown + rank]!,
      logprob: knownLogits[i * maxKnown + rank]! - logSumExp[i]!,
    })),
  }));
}
