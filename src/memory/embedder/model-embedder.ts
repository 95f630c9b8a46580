import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, resolveOptions } from '../../core/options.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { hashText } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import type { Embedder } from '../embedder-types.ts';
import { createRotation } from './rotation.ts';

export interface ModelEmbedderOptions {
  /** Default 768. */
  readonly dim?: number;
}

export interface ModelEmbedderContext {
  /** Values of a pooled vector. */
  readonly width: number;
  /** The hidden states of a text as one vector of `width` values, of any length. */
  pool(text: string): Promise<Float32Array>;
  /** Of the model's content. */
  readonly modelHash: string;
  /** How the states become one, and of how many tokens: whatever else the vectors depend on. */
  readonly pooling: string;
  readonly maxTokens: number;
  readonly sha256: Sha256;
  readonly options?: ModelEmbedderOptions;
}

/** One more whenever the same hidden states would give other vectors. */
const VERSION = 1;
/** Another than the static embedder's, though that matters to nobody: the two spaces are never compared. */
const SEED = 0x30de1;
const MAX_WIDTH = 1 << 15;

/** Text to vector by running a model: its pooled hidden states, turned into the dimension of the index without changing their angles. */
export function createModelEmbedder(context: ModelEmbedderContext): Embedder {
  const { width, pool, modelHash, pooling, maxTokens, sha256 } = context;
  const { dim } = resolveOptions<Required<ModelEmbedderOptions>>('model embedder', context.options, {
    dim: integerOption(768, 16, 8192),
  });
  if (!(Number.isSafeInteger(width) && width >= 1 && width <= MAX_WIDTH)) {
    throw new RuvLLMError('invalid_option', `hidden states of ${width} values cannot embed (at most ${MAX_WIDTH})`);
  }
  const rotation = createRotation(width, dim, SEED);
  const parameters = canonicalJson({ version: VERSION, modelHash, pooling, maxTokens, width, dim, seed: SEED });
  return {
    dim,
    fingerprint: `model-${VERSION}-${hashText(sha256, parameters).slice(0, 32)}`,
    async embed(text) {
      const pooled = await pool(text);
      if (pooled.length !== width) {
        throw new RuvLLMError('internal', `the model gave ${pooled.length} values, its vectors have ${width}`);
      }
      const vector = new Float32Array(dim);
      rotation.apply(pooled, vector);
      let squared = 0;
      for (const value of vector) squared += value * value;
      if (!(squared > 0) || !Number.isFinite(squared)) {
        throw new RuvLLMError('internal', `the model's vector of a text of ${text.length} characters has no direction`);
      }
      const scale = 1 / Math.sqrt(squared);
      for (let i = 0; i < dim; i++) vector[i]! *= scale;
      return vector;
    },
  };
}
