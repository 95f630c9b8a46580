import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, resolveOptions } from '../../core/options.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { hashText } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import type { Embedder } from '../embedder-types.ts';
import { applyProjection, type EmbeddingProjection } from './projection.ts';
import { createRotation } from './rotation.ts';

interface ModelEmbedderOptions {
  /** Default 768. */
  readonly dim?: number;
}

export interface ModelEmbedderContext {
  /** Values of a pooled vector. */
  readonly width: number;
  /** The pooled hidden states of a text, not normalized. */
  pool(text: string): Promise<Float32Array>;
  readonly modelHash: string;
  /** Part of the fingerprint, like `maxTokens`. */
  readonly pooling: string;
  readonly maxTokens: number;
  /** Applied to pooled vectors; another projection is another space. Default: none. */
  readonly projection?: EmbeddingProjection | null;
  readonly sha256: Sha256;
  readonly options?: ModelEmbedderOptions;
}

/** Incremented when the same hidden states give other vectors. */
const VERSION = 1;
const SEED = 0x30de1;
const MAX_WIDTH = 1 << 15;

/** Embeds by running a model; rotates its pooled hidden states into the index's dimension, which keeps their angles. */
export function createModelEmbedder(context: ModelEmbedderContext): Embedder {
  const { width, pool, modelHash, pooling, maxTokens, projection = null, sha256 } = context;
  const { dim } = resolveOptions<Required<ModelEmbedderOptions>>('model embedder', context.options, {
    dim: integerOption(768, 16, 8192),
  });
  if (!(Number.isSafeInteger(width) && width >= 1 && width <= MAX_WIDTH)) {
    throw new RuvLLMError('invalid_option', `hidden states have ${width} values, the maximum is ${MAX_WIDTH}`);
  }
  const rotation = createRotation(width, dim, SEED);
  const trained = projection === null ? {} : { projection: projection.contentHash };
  const parameters = canonicalJson({
    version: VERSION,
    modelHash,
    pooling,
    maxTokens,
    width,
    dim,
    seed: SEED,
    ...trained,
  });
  return {
    dim,
    fingerprint: `model-${VERSION}-${hashText(sha256, parameters).slice(0, 32)}`,
    async embed(text) {
      const pooled = await pool(text);
      if (pooled.length !== width) {
        throw new RuvLLMError('internal', `the model returned ${pooled.length} values, expected ${width}`);
      }
      const vector = new Float32Array(dim);
      rotation.apply(projection === null ? pooled : applyProjection(projection, pooled), vector);
      let squared = 0;
      for (const value of vector) squared += value * value;
      if (!(squared > 0) || !Number.isFinite(squared)) {
        throw new RuvLLMError(
          'internal',
          `the model's vector of a text of ${text.length} characters is zero or not finite`,
        );
      }
      const scale = 1 / Math.sqrt(squared);
      for (let i = 0; i < dim; i++) vector[i]! *= scale;
      return vector;
    },
  };
}
