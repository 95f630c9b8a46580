import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { TensorTypeName } from '../../src/core/tensor-type.ts';
import { quantFormats } from '../../src/quant/index.ts';
import { type RandomArchitecture, type RandomShape, writeRandomModel } from '../../test/support/random-model.ts';

/** A mixture with the layers of a 7B model that uses 1B per token. */
export const MIXTURE = '7b-a1b';

/** Shapes of about the size of real models: Llama, and a mixture. */
const SHAPES: Record<string, RandomShape> = {
  '15m': shape({ numLayers: 6, embeddingDim: 288, numHeads: 6, numKvHeads: 6, feedForwardDim: 768 }),
  '0.5b': shape({ numLayers: 24, embeddingDim: 1024, numHeads: 16, numKvHeads: 4, feedForwardDim: 4096 }),
  '1b': shape({ numLayers: 16, embeddingDim: 2048, numHeads: 32, numKvHeads: 8, feedForwardDim: 8192 }),
};

function mixtureShape(numLayers: number): RandomShape {
  const experts = { numExperts: 64, numUsed: 8, feedForwardDim: 1024 };
  return {
    ...shape({ numLayers, embeddingDim: 2048, numHeads: 16, numKvHeads: 16, feedForwardDim: 1024 }),
    experts,
  };
}

function shape(sizes: Omit<RandomShape, 'headDim' | 'vocabSize' | 'contextLength'>): RandomShape {
  return { ...sizes, headDim: sizes.embeddingDim / sizes.numHeads, vocabSize: 32000, contextLength: 8192 };
}

export const BENCH_SIZES: readonly string[] = Object.keys(SHAPES);

export interface BenchModel {
  /** Size and type, for titles. */
  name: string;
  path: string;
  sizeBytes: number;
  /** Multiply-adds per prompt token: all matrices except the last, which only the last token needs. */
  promptMacs: number;
  /** Bytes of weights read per token: all except the embedding table, of which it reads one row. */
  decodeBytes: number;
  /** Bytes of keys and values per token of context at 16 bits. */
  kvBytesPerToken: number;
}

/** Null if rows are whole blocks, else why there is no such model. */
export function whyNoModel(size: string, type: TensorTypeName): string | null {
  const { embeddingDim } = SHAPES[size]!;
  const { blockSize } = quantFormats[type];
  return embeddingDim % blockSize === 0 ? null : `rows of ${embeddingDim} are not whole ${type} blocks of ${blockSize}`;
}

/** Writes the random model once into .cache/bench and reuses it. */
export function benchModel(size: string, type: TensorTypeName): BenchModel {
  const modelShape = SHAPES[size];
  if (modelShape === undefined) throw new Error(`unknown size ${size}, one of ${Object.keys(SHAPES).join(', ')}`);
  return writeOnce('llama', size, type, modelShape);
}

/** The mixture, with fewer layers of the same shape if asked. */
export function benchMixture(type: TensorTypeName, numLayers: number): BenchModel {
  return writeOnce('qwen3moe', `${MIXTURE}-${numLayers}`, type, mixtureShape(numLayers));
}

/** A model with attention in a third of its layers and short convolutions in the others. */
export function benchHybrid(type: TensorTypeName, numLayers: number): BenchModel {
  const sizes = { numLayers, embeddingDim: 1024, numHeads: 16, numKvHeads: 4, feedForwardDim: 4096 };
  return writeOnce('lfm2', `hybrid-${numLayers}`, type, shape(sizes));
}

function writeOnce(
  architecture: RandomArchitecture,
  size: string,
  type: TensorTypeName,
  modelShape: RandomShape,
): BenchModel {
  const folder = '.cache/bench';
  const path = join(folder, `random-${architecture}-${size}-${type.toLowerCase()}.gguf`);
  if (!existsSync(path)) {
    console.error(`Writing ${path} …`);
    mkdirSync(folder, { recursive: true });
    const file = openSync(`${path}.part`, 'w');
    writeRandomModel(
      { architecture, type, seed: 1, shape: modelShape },
      { write: (bytes) => void writeSync(file, bytes) },
    );
    closeSync(file);
    renameSync(`${path}.part`, path);
  }
  return { name: `${size} ${type}`, path, sizeBytes: statSync(path).size, ...costs(modelShape, type) };
}

function costs(
  { numLayers, embeddingDim, numHeads, numKvHeads, headDim, feedForwardDim, vocabSize, experts }: RandomShape,
  type: TensorTypeName,
): Pick<BenchModel, 'promptMacs' | 'decodeBytes' | 'kvBytesPerToken'> {
  const attentionRows = (2 * numHeads + 2 * numKvHeads) * headDim;
  const inner = experts === undefined ? feedForwardDim : experts.numUsed * experts.feedForwardDim;
  const promptMacs = numLayers * embeddingDim * (attentionRows + 3 * inner);
  const { blockBytes, blockSize } = quantFormats[type];
  return {
    promptMacs,
    decodeBytes: ((promptMacs + vocabSize * embeddingDim) * blockBytes) / blockSize,
    kvBytesPerToken: 2 * numLayers * numKvHeads * headDim * 2,
  };
}
