import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { CheckpointTensors } from './checkpoint-tensors.ts';
import { mapValues, pickRows, type ValueReader } from './value-reader.ts';

/** The tensors of a checkpoint with names relative to a layer. */
export type LayerTensors = Pick<CheckpointTensors, 'has' | 'values' | 'bytes'> & {
  /** The full name, for errors. */
  fullName(from: string): string;
};

/** One tensor of a GGUF file, and how it is read from the checkpoint. */
export interface HfTensor {
  /** Its name after `blk.N.`. */
  readonly to: string;
  /** GGUF order: dims[0] is contiguous. */
  readonly dims: readonly number[];
  read(source: LayerTensors): ValueReader | PackedReader;
}

/** One that is read as floats. */
export interface FloatHfTensor extends HfTensor {
  read(source: LayerTensors): ValueReader;
}

/** A tensor that is already quantized: blocks of `type`, a few at a time. */
export interface PackedReader {
  readonly type: TensorTypeName;
  /** Fills `out` with whole blocks starting at `firstBlock`. */
  readBlocks(firstBlock: number, out: Uint8Array): void;
}

/** A tensor as it is; `shape` if the checkpoint has another one with the same order of values. */
export const copyTensor = (
  from: string,
  to: string,
  dims: readonly number[],
  shape: readonly number[] = dims.toReversed(),
): FloatHfTensor => ({
  to,
  dims,
  read: (source) => source.values(from, shape),
});

/** The weight of a module. */
export const weight = (from: string, to: string, dims: readonly number[]): FloatHfTensor =>
  copyTensor(`${from}.weight`, `${to}.weight`, dims);

/** The weight of a module, or zeros where the checkpoint does not have it: decoders do not use it, but some require it. */
export function weightOrZeros(from: string, to: string, dims: readonly number[]): FloatHfTensor {
  const tensor = weight(from, to, dims);
  return {
    ...tensor,
    read: (source) => (source.has(`${from}.weight`) ? tensor.read(source) : (_, out) => void out.fill(0)),
  };
}

/** The tensor with every value changed. */
export const changeValues = (
  tensor: FloatHfTensor,
  map: (value: number, position: number) => number,
): FloatHfTensor => ({ ...tensor, read: (source) => mapValues(tensor.read(source), map) });

/** The tensor multiplied by a factor. */
export const scaled = (tensor: FloatHfTensor, factor: number): FloatHfTensor =>
  factor === 1 ? tensor : changeValues(tensor, (value) => value * factor);

/** Some checkpoints store norm weights minus one. */
export const plusOne = (tensor: FloatHfTensor): FloatHfTensor => changeValues(tensor, (value) => value + 1);

/** The decay of state space layers: the checkpoint has the logarithm of its negative. */
export const negativeExp = (tensor: FloatHfTensor): FloatHfTensor => changeValues(tensor, (value) => -Math.exp(value));

/** Rows of a tensor with `shape` in the checkpoint: row r is its row `sourceOf(r)`. Rows of a vector are single values. */
export const rowsOf = (
  from: string,
  shape: readonly number[],
  to: string,
  dims: readonly number[],
  sourceOf: (row: number) => number,
): FloatHfTensor => ({
  to,
  dims,
  read: (source) => pickRows(source.values(from, shape), shape.length === 1 ? 1 : shape.at(-1)!, sourceOf),
});

/**
 * Hugging Face rotates value i of a head with value i + half; some GGUF architectures rotate adjacent values. So row 2i + j of a
 * head in GGUF is row j * half + i in the checkpoint.
 */
export const pairHeads = (tensor: FloatHfTensor, headLength: number): FloatHfTensor => {
  const numCols = tensor.dims.length === 1 ? 1 : tensor.dims[0]!;
  const sourceOf = (row: number): number => {
    const inHead = row % headLength;
    return row - inHead + (inHead % 2) * (headLength / 2) + (inHead >> 1);
  };
  return { ...tensor, read: (source) => pickRows(tensor.read(source), numCols, sourceOf) };
};
