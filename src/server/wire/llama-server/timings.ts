import type { GenerateSummary } from '../../../runtime/generation-types.ts';

/** `timings` as in llama-server. */
export function toWireTimings({ usage, timings }: Pick<GenerateSummary, 'usage' | 'timings'>) {
  const promptTokens = usage.promptTokens - usage.cachedTokens;
  const { promptMs, generateMs } = timings;
  return {
    cache_n: usage.cachedTokens,
    prompt_n: promptTokens,
    prompt_ms: promptMs,
    prompt_per_token_ms: promptTokens === 0 ? null : promptMs / promptTokens,
    prompt_per_second: timings.promptTokensPerSecond,
    predicted_n: usage.completionTokens,
    predicted_ms: generateMs,
    predicted_per_token_ms: usage.completionTokens === 0 ? null : generateMs / usage.completionTokens,
    predicted_per_second: timings.tokensPerSecond,
  };
}
