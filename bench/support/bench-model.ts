import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { type RandomShape, writeRandomModel } from '../../test/support/random-model.ts';

/** Llama shapes about the size of real models. */
const SHAPES: Record<string, RandomShape> = {
  '15m': shape({ numLayers: 6, embeddingDim: 288, numHeads: 6, numKvHeads: 6, feedForwardDim: 768 }),
  '0.5b': shape({ numLayers: 24, embeddingDim: 1024, numHeads: 16, numKvHeads: 4, feedForwardDim: 4096 }),
  '1b': shape({ numLayers: 16, embeddingDim: 2048, numHeads: 32, numKvHeads: 8, feedForwardDim: 8192 }),
};

function shape(given: Omit<RandomShape, 'headDim' | 'vocabSize' | 'contextLength'>): RandomShape {
  return { ...given, headDim: given.embeddingDim / given.numHeads, vocabSize: 32000, contextLength: 8192 };
}

export interface BenchModel {
  path: string;
  sizeBytes: number;
  shape: RandomShape;
}

/** Writes the random model once into .cache/bench and reuses it. */
export function benchModel(size: string, type: TensorTypeName): BenchModel {
  const modelShape = SHAPES[size];
  if (modelShape === undefined) throw new Error(`unknown size ${size}, one of ${Object.keys(SHAPES).join(', ')}`);
  const folder = '.cache/bench';
  const path = join(folder, `random-llama-${size}-${type.toLowerCase()}.gguf`);
  if (!existsSync(path)) {
    console.error(`Writing ${path} …`);
    mkdirSync(folder, { recursive: true });
    const file = openSync(`${path}.part`, 'w');
    writeRandomModel(
      { architecture: 'llama', type, seed: 1, shape: modelShape },
      { write: (bytes) => void writeSync(file, bytes) },
    );
    closeSync(file);
    renameSync(`${path}.part`, path);
  }
  return { path, sizeBytes: statSync(path).size, shape: modelShape };
}
