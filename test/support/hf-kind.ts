import type { CheckpointTensor } from './safetensors-file.ts';

/** The tensors of a random model file, on their way to those of a checkpoint. */
export interface TensorBag {
  has(name: string): boolean;
  /** Removes a tensor of the file; its shape is row-major. */
  take(name: string): { shape: number[]; values: Float32Array };
  /** The bytes of a tensor of the file. */
  takeBytes(name: string): { shape: number[]; bytes: Uint8Array };
  /** Adds a tensor of the checkpoint. */
  put(name: string, shape: readonly number[], values: CheckpointTensor['values']): void;
}

/** Reads the metadata of the file under the architecture's prefix. */
export interface KindMetadata {
  number(key: string, defaultValue?: number): number;
  readonly numLayers: number;
}

/** How one kind of checkpoint differs from Llama's names; written apart from the converter's tables. */
export interface HfKind {
  readonly modelType: string;
  /** `model_type` of a model that also sees or hears; the settings are in its `text_config`. */
  readonly outerType?: string;
  /** Names that differ: GGUF module to checkpoint module. */
  readonly names?: Readonly<Record<string, string>>;
  readonly rope?: 'interleaved';
  /** The checkpoint has the weights of norms minus one, except those of state space layers. */
  readonly normMinusOne?: boolean;
  readonly epsilonName?: string;
  readonly config?: (metadata: KindMetadata) => Record<string, unknown>;
  /** Tensors that are not renamed only, of one layer. */
  readonly layer?: (bag: TensorBag, from: string, to: string, metadata: KindMetadata) => void;
  /** The same for tensors outside layers. */
  readonly ends?: (bag: TensorBag, metadata: KindMetadata) => void;
  /** Where the layers are; default `model`. */
  readonly prefix?: string;
}

/** Splits the first dimension: one tensor for each expert. */
export function putExperts(bag: TensorBag, from: string, at: string, names: readonly [string, string, string]): void {
  for (const [i, part] of ['gate', 'up', 'down'].entries()) {
    const { shape, values } = bag.take(`${from}ffn_${part}_exps.weight`);
    const [count = 0, ...matrix] = shape;
    const size = values.length / count;
    for (let expert = 0; expert < count; expert++) {
      const name = `${at}.${expert}.${names[i]!}.weight`;
      bag.put(name, matrix, values.slice(expert * size, (expert + 1) * size));
    }
  }
}

/** Gates before up in each expert of one stack. */
export function stackGates(gate: Float32Array, up: Float32Array, count: number): Float32Array {
  const size = gate.length / count;
  const out = new Float32Array(2 * gate.length);
  for (let i = 0; i < count; i++) {
    out.set(gate.subarray(i * size, (i + 1) * size), 2 * i * size);
    out.set(up.subarray(i * size, (i + 1) * size), (2 * i + 1) * size);
  }
  return out;
}

/** Rows in the order of `sources`. */
export function pickedRows(values: Float32Array, numCols: number, sources: readonly number[]): Float32Array {
  const out = new Float32Array(sources.length * numCols);
  sources.forEach((source, row) => out.set(values.subarray(source * numCols, (source + 1) * numCols), row * numCols));
  return out;
}

/** Columns become rows. */
export function transposed(values: Float32Array, numRows: number, numCols: number): Float32Array {
  return Float32Array.from({ length: values.length }, (_, i) => {
    const [col, row] = [Math.floor(i / numRows), i % numRows];
    return values[row * numCols + col]!;
  });
}

export const range = (length: number, of: (i: number) => number = (i) => i): number[] =>
  Array.from({ length }, (_, i) => of(i));

/** A filter of a convolution has a dimension of one channel. */
export function putFilter(bag: TensorBag, from: string, to: string): void {
  const { shape, values } = bag.take(from);
  bag.put(to, [shape[0]!, 1, shape[1]!], values);
}

export function putFlat(bag: TensorBag, from: string, to: string): void {
  const { values } = bag.take(from);
  bag.put(to, [values.length], values);
}
