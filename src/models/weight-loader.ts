import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, TensorInfo } from '../gguf/index.ts';
import type { MatrixSource, Offset, WeightMatrix } from '../kernels/contract.ts';
import { quantFormats, rowBytes } from '../quant/index.ts';

/** A matrix and its optional bias. */
export interface Projection {
  readonly weight: WeightMatrix;
  readonly bias: Offset | null;
  /** Its name without `.weight`; adapters refer to it. */
  readonly site: string;
}

/** Destination of weights: an arena, or only an estimate. */
export interface WeightSink {
  matrix(source: MatrixSource): WeightMatrix;
  /** `read` creates the values; an estimate does not call it. */
  vector(name: string, length: number, read: () => Float32Array): Offset;
}

/** Finds weights by tensor name and checks each against the expected shape. */
export interface WeightLoader {
  has(name: string): boolean;
  matrix(name: string, numRows: number, numCols: number): WeightMatrix;
  vector(name: string, length: number): Offset;
  /** `name`.weight, and `name`.bias if the file has it. */
  projection(name: string, numRows: number, numCols: number): Projection;
  /** Like `projection`, for a matrix that stacks several: one per number of rows, in order, and named by `sites`. */
  splitProjection<const N extends readonly number[]>(
    name: string,
    parts: N,
    numCols: number,
    sites: { [K in keyof N]: string },
  ): { [K in keyof N]: Projection };
}

export function createWeightLoader(gguf: GgufFile, sink: WeightSink): WeightLoader {
  const has = (name: string): boolean => gguf.tensors.has(name);

  function rowsOf(tensor: TensorInfo, firstRow: number, numRows: number, numCols: number): WeightMatrix {
    const start = firstRow * rowBytes(tensor.type, numCols);
    return sink.matrix({
      name: tensor.name,
      type: tensor.type,
      numRows,
      numCols,
      readInto: (target, byteOffset) => gguf.readTensor(tensor, target, start + byteOffset),
    });
  }

  function splitProjection(
    name: string,
    parts: readonly number[],
    numCols: number,
    sites: readonly string[],
  ): Projection[] {
    const total = parts.reduce((sum, part) => sum + part, 0);
    const tensor = checkedTensor(gguf, `${name}.weight`, [numCols, total]);
    const biasName = `${name}.bias`;
    const bias = has(biasName) ? checkedTensor(gguf, biasName, [total]) : null;
    let firstRow = 0;
    return parts.map((numRows, i) => {
      const start = firstRow;
      firstRow += numRows;
      return {
        weight: rowsOf(tensor, start, numRows, numCols),
        bias:
          bias === null
            ? null
            : sink.vector(biasName, numRows, () => readVector(gguf, biasName, total).subarray(start, start + numRows)),
        site: sites[i]!,
      };
    });
  }

  return {
    has,
    matrix: (name, numRows, numCols) => rowsOf(checkedTensor(gguf, name, [numCols, numRows]), 0, numRows, numCols),
    vector(name, length) {
      checkedTensor(gguf, name, [length]);
      return sink.vector(name, length, () => readVector(gguf, name, length));
    },
    projection: (name, numRows, numCols) => splitProjection(name, [numRows], numCols, [name])[0]!,
    splitProjection: splitProjection as WeightLoader['splitProjection'],
  };
}

/** The values of a tensor of any type, in the order of the file. */
export function readValues(gguf: GgufFile, name: string, dims: readonly number[]): Float32Array {
  const tensor = checkedTensor(gguf, name, dims);
  const bytes = new Uint8Array(tensor.sizeBytes);
  gguf.readTensor(tensor, bytes);
  const format = quantFormats[tensor.type];
  const values = new Float32Array(tensor.numElements);
  format.dequantize(bytes, 0, values, 0, values.length / format.blockSize);
  return values;
}

export const readVector = (gguf: GgufFile, name: string, length: number): Float32Array =>
  readValues(gguf, name, [length]);

function checkedTensor(gguf: GgufFile, name: string, expected: readonly number[]): TensorInfo {
  const tensor = gguf.tensor(name);
  const dims = [...tensor.dims];
  while (dims.length > expected.length && dims.at(-1) === 1) dims.pop();
  if (dims.length !== expected.length || dims.some((dim, i) => dim !== expected[i])) {
    throw new RuvLLMError(
      'invalid_model_file',
      `tensor ${name} has shape [${tensor.dims.join(', ')}], the model requires [${expected.join(', ')}]`,
      { data: { tensor: name, shape: tensor.dims.join(' x '), expected: expected.join(' x ') } },
    );
  }
  return tensor;
}
