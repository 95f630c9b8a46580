import type { GenerateSummary } from '../runtime/generation-types.ts';
import type { ModelInfo } from '../runtime/model-info.ts';
import { formatBytes, formatCount, formatRate } from './format.ts';

/** One line about a finished answer of a model with this context. */
export function describeAnswer({ usage, timings, finishReason }: GenerateSummary, maxContext: number): string {
  const parts = [
    `${usage.completionTokens} tokens, ${formatRate(timings.tokensPerSecond)} tokens/s`,
    `prompt ${usage.promptTokens} tokens${known(usage)}, ${formatRate(timings.promptTokensPerSecond)} tokens/s`,
    `first token after ${Math.round(timings.firstTokenMs)} ms`,
  ];
  // An answer that was cut off looks like one that ended badly; say which.
  if (finishReason === 'length') {
    const bound = usage.totalTokens >= maxContext ? '--context' : '--max-tokens';
    parts.push(`cut off after ${usage.completionTokens} tokens (${bound})`);
  }
  return parts.join(' · ');
}

function known({ cachedTokens }: GenerateSummary['usage']): string {
  return cachedTokens === 0 ? '' : ` (${cachedTokens} cached)`;
}

/** One line about a loaded model. */
export function describeModel(info: ModelInfo): string {
  return [
    `${info.name ?? info.path}: ${info.architecture}, ${formatCount(info.numParameters)} parameters, ${info.quantization}`,
    `context ${info.maxContext} of ${info.contextLength}`,
    `${info.kernels} kernels on ${info.numThreads} ${info.numThreads === 1 ? 'thread' : 'threads'}`,
    `${formatBytes(info.memory.totalBytes)} of memory, loaded in ${Math.round(info.loadMs)} ms`,
  ].join(' · ');
}
