import { checkKeys } from '../core/options.ts';
import { abortError } from '../core/abort.ts';
import {
  type EmbeddingPair,
  type EmbeddingTrainingReport,
  trainOnPairs,
} from '../learning/embedding-training/train-embeddings.ts';
import type { ProjectionTrainingOptions } from '../learning/embedding-training/train-projection.ts';
import { createProjection, type EmbeddingProjection } from '../memory/embedder/projection.ts';
import { openPooler } from './memory/model-embedder.ts';
import { writeProjectionFile } from './projection-file.ts';

/** Options of `trainEmbeddings`. */
export interface TrainEmbeddingsOptions extends ProjectionTrainingOptions {
  /** Path of the model whose embeddings are trained, usually a sentence encoder. Its own weights stay as they are. */
  readonly model: string;
  /** At least 20 groups; a fifth of them is held out to measure the result. */
  readonly pairs: readonly EmbeddingPair[];
  /** File to write. Default: none. */
  readonly output?: string;
  readonly signal?: AbortSignal;
  /** Called while texts are embedded and after each pass. */
  readonly onProgress?: (step: TrainEmbeddingsProgress) => void;
}

/** Progress of a training. */
export type TrainEmbeddingsProgress =
  | { readonly phase: 'embedding'; readonly numDone: number; readonly numTexts: number }
  | { readonly phase: 'training' | 'control'; readonly epoch: number; readonly loss: number };

/** A trained projection and its held-out figures. */
export interface TrainedEmbeddings {
  readonly projection: EmbeddingProjection;
  readonly report: EmbeddingTrainingReport;
}

const KEYS = ['model', 'pairs', 'output', 'signal', 'onProgress', 'rank', 'numEpochs', 'batchSize', 'learningRate', 'temperature', 'seed']; // prettier-ignore
const AT_ONCE = 32;

/** Trains a low-rank projection of a model's embeddings by contrast, and measures it on held-out pairs with a shuffled control. */
export async function trainEmbeddingProjection(given: TrainEmbeddingsOptions): Promise<TrainedEmbeddings> {
  checkKeys(given, 'trainEmbeddings', KEYS);
  const { model, pairs, output, signal, onProgress, ...options } = given;
  const pooler = openPooler(model);
  const check = (): void => {
    if (signal?.aborted === true) throw abortError(signal);
  };
  try {
    const { parameters, rank, width, report } = await trainOnPairs({
      pairs,
      options,
      async embed(texts) {
        const vectors: Float32Array[] = [];
        while (vectors.length < texts.length) {
          check();
          const part = texts.slice(vectors.length, vectors.length + AT_ONCE);
          vectors.push(...(await Promise.all(part.map((text) => pooler.pool(text)))).map(unitOf));
          onProgress?.({ phase: 'embedding', numDone: vectors.length, numTexts: texts.length });
        }
        return vectors;
      },
      onEpoch(phase, epoch, loss) {
        onProgress?.({ phase, epoch, loss });
        check();
        return true;
      },
    });
    const [a, b] = [parameters.slice(0, rank * width), parameters.slice(rank * width)];
    const projection = createProjection({ width, rank, a, b, modelHash: pooler.modelHash });
    if (output !== undefined) writeProjectionFile(output, projection);
    return { projection, report };
  } finally {
    await pooler.close();
  }
}

function unitOf(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}
