import type { Metadata } from '../gguf/types.ts';
import { DEFAULT_SAMPLING, type SamplingDefaults } from '../sampling/generate-params.ts';

/** Sampling of calls that set none of it. */
export interface ModelSampling extends SamplingDefaults {
  /** `file`: the model file recommends it; `low precision`: the weights have few bits; `default`: neither. */
  readonly source: 'file' | 'low precision' | 'default';
}

/** With fewer bits per weight, unlikely tokens are often wrong ones. */
const LOW_PRECISION_BITS = 4;
const LOW_PRECISION_TEMPERATURE = 0.3;

/** Keys as in llama.cpp, with the range of each option; values outside it are not used. */
const KEYS = {
  temperature: ['general.sampling.temp', 0, 100],
  topK: ['general.sampling.top_k', 0, 2 ** 31 - 1],
  topP: ['general.sampling.top_p', 0, 1],
  minP: ['general.sampling.min_p', 0, 1],
  repetitionPenalty: ['general.sampling.penalty_repeat', 0.01, 10],
} as const satisfies Record<keyof SamplingDefaults, readonly [string, number, number]>;

/** The defaults that a file recommends, or those for its precision. */
export function readSampling(metadata: Metadata, bitsPerWeight: number): ModelSampling {
  const recommended = Object.entries(KEYS).flatMap(([option, [key, min, max]]) => {
    const value = metadata.number(key, NaN);
    // 32-bit floats: 0.95 is stored as 0.949999988.
    return value >= min && value <= max ? [[option, Math.round(value * 1e6) / 1e6]] : [];
  });
  if (recommended.length > 0) {
    // A file that sets only top-p and the like is not meant to be combined with our other limits.
    const rest = { ...DEFAULT_SAMPLING, minP: 0 };
    return { ...rest, ...(Object.fromEntries(recommended) as Partial<SamplingDefaults>), source: 'file' };
  }
  if (bitsPerWeight < LOW_PRECISION_BITS) {
    return { ...DEFAULT_SAMPLING, temperature: LOW_PRECISION_TEMPERATURE, source: 'low precision' };
  }
  return { ...DEFAULT_SAMPLING, source: 'default' };
}
