import { integerKind, type Kind, numberKind } from '../core/kinds.ts';
import { checkKeys, type OptionReader, refuse } from '../core/options.ts';
import type { Metadata } from '../gguf/types.ts';
import { DEFAULT_SAMPLING, type SamplingDefaults } from '../sampling/generate-params.ts';

/** Sampling of calls that set none of it. */
export interface ModelSampling extends SamplingDefaults {
  /** `config`: the model was loaded with it; `file`: the model file recommends it; `low precision`: the weights have few bits; `default`: none of these. */
  readonly source: 'config' | 'file' | 'low precision' | 'default';
}

/** With fewer bits per weight, unlikely tokens are often wrong ones. */
const LOW_PRECISION_BITS = 4;
const LOW_PRECISION_TEMPERATURE = 0.3;

/** The range of each option. */
export const SAMPLING_KINDS: Readonly<Record<keyof SamplingDefaults, Kind<number>>> = {
  temperature: numberKind(0, 100),
  topK: integerKind(0, 2 ** 31 - 1),
  topP: numberKind(0, 1),
  minP: numberKind(0, 1),
  repetitionPenalty: numberKind(0.01, 10),
};

/** Keys as in llama.cpp. */
const KEYS: Readonly<Record<keyof SamplingDefaults, string>> = {
  temperature: 'general.sampling.temp',
  topK: 'general.sampling.top_k',
  topP: 'general.sampling.top_p',
  minP: 'general.sampling.min_p',
  repetitionPenalty: 'general.sampling.penalty_repeat',
};

type SamplingOption = keyof SamplingDefaults;

/** Reads the option `sampling` of a model; null: none. */
export const samplingOption: OptionReader<Partial<SamplingDefaults> | null> = (value, name) => {
  if (value === undefined || value === null) return null;
  checkKeys(value, name, Object.keys(SAMPLING_KINDS), `${name}.`);
  for (const [key, setting] of Object.entries(value)) {
    const kind = SAMPLING_KINDS[key as SamplingOption];
    if (!kind.is(setting)) refuse(`option "${name}.${key}" must be ${kind.expected}`, `${name}.${key}`);
  }
  return value as Partial<SamplingDefaults>;
};

/** The defaults that the model is loaded with, before those that its file recommends, before those for its precision. */
export function readSampling(
  metadata: Metadata,
  bitsPerWeight: number,
  configured: Partial<SamplingDefaults> | null,
): ModelSampling {
  const fromFile = readFileSampling(metadata, bitsPerWeight);
  return configured === null || Object.keys(configured).length === 0
    ? fromFile
    : { ...fromFile, ...configured, source: 'config' };
}

function readFileSampling(metadata: Metadata, bitsPerWeight: number): ModelSampling {
  const recommended = Object.entries(KEYS).flatMap(([option, key]) => {
    const value = metadata.number(key, NaN);
    // 32-bit floats: 0.95 is stored as 0.949999988. Values outside the range are not used.
    return SAMPLING_KINDS[option as SamplingOption].is(value) ? [[option, Math.round(value * 1e6) / 1e6]] : [];
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
