import type { GenerateSummary } from '../runtime/generation-types.ts';
import type { ModelInfo } from '../runtime/model-info.ts';
import { formatBytes, formatCount, formatRate } from './format.ts';

/** One line about a finished answer. */
export function describeAnswer({ usage, timings, finishReason }: GenerateSummary, maxContext: number): string {
  const cached = usage.cachedTokens === 0 ? '' : ` (${usage.cachedTokens} cached)`;
  const parts = [
    `${usage.completionTokens} tokens, ${formatRate(timings.tokensPerSecond)} tokens/s`,
    `prompt ${usage.promptTokens} tokens${cached}, ${formatRate(timings.promptTokensPerSecond)} tokens/s`,
    `time to first token ${Math.round(timings.firstTokenMs)} ms`,
  ];
  // A truncated answer otherwise looks like a bad one.
  if (finishReason === 'length') {
    const bound = usage.totalTokens >= maxContext ? '--context' : '--max-tokens';
    parts.push(`cut off after ${usage.completionTokens} tokens (${bound})`);
  }
  return parts.join(' · ');
}

const SAMPLING_REASONS = {
  config: 'as configured',
  file: 'recommended by the file',
  'low precision': 'low, because of the few bits per weight',
} as const;

/** The layers and bytes of each side; null: no kernels of a GPU were chosen. */
export function describeSplit({ split }: Pick<ModelInfo['memory'], 'split'>): string | null {
  if (split === undefined) return null;
  const { numLayers, numGpuLayers, gpu, cpu } = split;
  const bytesOf = ({ weightBytes, kvBytes }: typeof gpu): string =>
    `weights ${formatBytes(weightBytes)}, KV pages ${formatBytes(kvBytes)}`;
  if (cpu.weightBytes === 0) return `all ${numLayers} layers on the GPU (${bytesOf(gpu)})`;
  if (numGpuLayers === 0) return `no layers on the GPU, ${numLayers} on the processor (${bytesOf(cpu)})`;
  const numCpuLayers = numLayers - numGpuLayers;
  const remaining = numCpuLayers === 0 ? 'the rest' : String(numCpuLayers);
  return `${numGpuLayers} of ${numLayers} layers on the GPU (${bytesOf(gpu)}), ${remaining} on the processor (${bytesOf(cpu)})`;
}

/** The same as a row of details, before the model is loaded. */
export function splitRows(memory: ModelInfo['memory'] | null): [string, string][] {
  const split = memory === null ? null : describeSplit(memory);
  return split === null ? [] : [['GPU layers', split]];
}

/** One line about a loaded model. */
export function describeModel(info: ModelInfo): string {
  const split = describeSplit(info.memory);
  return [
    `${info.displayName}: ${info.architecture}, ${formatCount(info.numParameters)} parameters`,
    `context ${info.maxContext} of ${info.contextLength}`,
    `${info.kernels} kernels on ${info.numThreads} ${info.numThreads === 1 ? 'thread' : 'threads'}`,
    ...(split === null ? [] : [split]),
    `temperature ${info.sampling.temperature}${info.sampling.source === 'default' ? '' : ` (${SAMPLING_REASONS[info.sampling.source]})`}`,
    `${formatBytes(info.memory.totalBytes)} memory, loaded in ${Math.round(info.loadMs)} ms`,
  ].join(' · ');
}
