import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile, TensorInfo } from '../gguf/index.ts';
import { EXPERT_ROW_MULTIPLE, type MatrixSource, type Offset, type WeightMatrix } from '../kernels/contract.ts';
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

/** Consecutive rows of a tensor. */
export interface RowRange {
  readonly start: number;
  readonly numRows: number;
}

/** Finds weights by tensor name and checks each against the expected shape. */
export interface WeightLoader {
  has(name: string): boolean;
  matrix(name: string, numRows: number, numCols: number): WeightMatrix;
  /** A matrix whose rows have several dimensions in the file, such as the kernels of a convolution. */
  flattened(name: string, rowDims: readonly number[], numRows: number): WeightMatrix;
  vector(name: string, length: number): Offset;
  /** A tensor of `length` values with one row, or one value per row. */
  matrixAsVector(name: string, length: number): Offset;
  /** A tensor of `numGroups` rows as one vector. */
  groupedVector(name: string, numGroups: number, length: number): Offset;
  /** Parts of a tensor's rows, each as f32[numCols × part]: columns become rows. */
  transposedParts<const N extends readonly number[]>(
    name: string,
    parts: N,
    numCols: number,
  ): { [K in keyof N]: Offset };
  /** A vector cut into parts. */
  vectorParts<const N extends readonly number[]>(name: string, parts: N): { [K in keyof N]: Offset };
  /** A stack of `count` matrices, one by one. */
  stack(name: string, count: number, numRows: number, numCols: number): WeightMatrix[];
  /** One of several matrices with `parts` rows each, one below the other. */
  part(name: string, parts: readonly number[], index: number, numCols: number): WeightMatrix;
  /** `name`.weight, only these rows of its `totalRows`, in this order. */
  pickedRows(
    name: string,
    ranges: readonly RowRange[],
    numCols: number,
    options: { readonly site: string; readonly totalRows: number },
  ): Projection;
  /** Like `part`, with rows and columns exchanged. Blocks cannot be, so the values of a quantized matrix become halves. */
  transposedPart(name: string, parts: readonly number[], index: number, numCols: number): WeightMatrix;
  /** A vector of zeros: a bias that the architecture does not have. */
  zeros(length: number): Offset;
  /** A vector of ones: the weights of a norm that has none. */
  ones(length: number): Offset;
  /** `name`.weight, and `name`.bias if the file has it. */
  projection(name: string, numRows: number, numCols: number): Projection;
  /** `name`.weight with the matrices of `count` experts, and `name`.bias if the file has it. */
  experts(name: string, count: number, numRows: number, numCols: number): Projection;
  /** Like `experts`, for matrices that stack several of `parts` rows, expert by expert: one stack per part, named by `sites`. */
  splitExperts<const N extends readonly number[]>(
    name: string,
    count: number,
    parts: N,
    numCols: number,
    sites: { [K in keyof N]: string },
  ): { [K in keyof N]: Projection };
  /** Like `projection`, for a matrix that stacks several: one per number of rows, in order, and named by `sites`. */
  splitProjection<const N extends readonly number[]>(
    name: string,
    parts: N,
    numCols: number,
    sites: { [K in keyof N]: string },
  ): { [K in keyof N]: Projection };
}

/**
 * With `onProblem`, missing and misshapen tensors are reported instead of thrown; the sink gets them as if they were
 * right.
 */
export function createWeightLoader(
  gguf: GgufFile,
  sink: WeightSink,
  onProblem?: (problem: RuvLLMError) => void,
): WeightLoader {
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
    const tensor = checkedTensor(gguf, `${name}.weight`, [numCols, total], onProblem);
    const biasName = `${name}.bias`;
    const bias = has(biasName) ? checkedTensor(gguf, biasName, [total], onProblem) : null;
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
    matrix: (name, numRows, numCols) =>
      rowsOf(checkedTensor(gguf, name, [numCols, numRows], onProblem), 0, numRows, numCols),
    flattened: (name, rowDims, numRows) =>
      rowsOf(checkedTensor(gguf, name, [...rowDims, numRows], onProblem), 0, numRows, productOf(rowDims)),
    stack(name, count, numRows, numCols) {
      const tensor = checkedTensor(gguf, name, withoutOnes([numCols, numRows, count]), onProblem);
      return Array.from({ length: count }, (_, i) => rowsOf(tensor, i * numRows, numRows, numCols));
    },
    part(name, parts, index, numCols) {
      const [start, end] = cut(parts)[index]!;
      const tensor = checkedTensor(gguf, name, [numCols, sumOf(parts)], onProblem);
      return rowsOf(tensor, start, end - start, numCols);
    },
    pickedRows(name, ranges, numCols, { site, totalRows }) {
      const tensor = checkedTensor(gguf, `${name}.weight`, [numCols, totalRows], onProblem);
      return { weight: sink.matrix(pickedSource(gguf, tensor, ranges, numCols)), bias: null, site };
    },
    transposedPart(name, parts, index, numCols) {
      const [start, end] = cut(parts)[index]!;
      const tensor = checkedTensor(gguf, name, [numCols, sumOf(parts)], onProblem);
      return sink.matrix(transposedSource(gguf, tensor, [start, end], numCols));
    },
    vector(name, length) {
      checkedTensor(gguf, name, [length], onProblem);
      return sink.vector(name, length, () => readVector(gguf, name, length));
    },
    groupedVector(name, numGroups, length) {
      const dims = withoutOnes([length, numGroups]);
      checkedTensor(gguf, name, dims, onProblem);
      return sink.vector(name, numGroups * length, () => readValues(gguf, name, dims));
    },
    matrixAsVector(name, length) {
      const dims = gguf.tensors.get(name)?.dims[0] === 1 && length > 1 ? [1, length] : [length];
      checkedTensor(gguf, name, dims, onProblem);
      return sink.vector(name, length, () => readValues(gguf, name, dims));
    },
    transposedParts: ((name, parts, numCols) => {
      const dims = [numCols, sumOf(parts)];
      checkedTensor(gguf, name, dims, onProblem);
      return cut(parts).map(([start, end]) =>
        sink.vector(name, (end - start) * numCols, () =>
          transpose(readValues(gguf, name, dims).subarray(start * numCols, end * numCols), numCols),
        ),
      );
    }) as WeightLoader['transposedParts'],
    vectorParts: ((name, parts) => {
      const length = sumOf(parts);
      checkedTensor(gguf, name, [length], onProblem);
      return cut(parts).map(([start, end]) =>
        sink.vector(name, end - start, () => readVector(gguf, name, length).subarray(start, end)),
      );
    }) as WeightLoader['vectorParts'],
    zeros: (length) => sink.vector('zeros', length, () => new Float32Array(length)),
    ones: (length) => sink.vector('ones', length, () => new Float32Array(length).fill(1)),
    splitExperts: ((name, count, parts, numCols, sites) => {
      const numRows = sumOf(parts);
      const tensor = checkedTensor(gguf, `${name}.weight`, withoutOnes([numCols, numRows, count]), onProblem);
      return cut(parts).map(([start, end], i) => {
        checkExpertRows(name, count, end - start);
        const ranges = Array.from({ length: count }, (_, expert) => ({
          start: expert * numRows + start,
          numRows: end - start,
        }));
        return { weight: sink.matrix(pickedSource(gguf, tensor, ranges, numCols)), bias: null, site: sites[i]! };
      });
    }) as WeightLoader['splitExperts'],
    experts(name, count, numRows, numCols) {
      checkExpertRows(name, count, numRows);
      const tensor = checkedTensor(gguf, `${name}.weight`, withoutOnes([numCols, numRows, count]));
      const biasName = `${name}.bias`;
      const biasDims = withoutOnes([numRows, count]);
      const readBias = (): Float32Array => readValues(gguf, biasName, biasDims);
      if (has(biasName)) checkedTensor(gguf, biasName, biasDims);
      return {
        weight: rowsOf(tensor, 0, count * numRows, numCols),
        bias: has(biasName) ? sink.vector(biasName, count * numRows, readBias) : null,
        site: name,
      };
    },
    projection: (name, numRows, numCols) => splitProjection(name, [numRows], numCols, [name])[0]!,
    splitProjection: splitProjection as WeightLoader['splitProjection'],
  };
}

const productOf = (dims: readonly number[]): number => dims.reduce((product, dim) => product * dim, 1);

const sumOf = (parts: readonly number[]): number => parts.reduce((sum, part) => sum + part, 0);

function checkExpertRows(name: string, count: number, numRows: number): void {
  if (count === 1 || numRows % EXPERT_ROW_MULTIPLE === 0) return;
  throw new RuvLLMError(
    'unsupported',
    `tensor ${name}.weight has ${numRows} rows per expert, must be a multiple of ${EXPERT_ROW_MULTIPLE}`,
    { data: { tensor: `${name}.weight`, numRows } },
  );
}

/** The ranges of consecutive parts. */
function cut(parts: readonly number[]): [start: number, end: number][] {
  let start = 0;
  return parts.map((part) => [start, (start += part)]);
}

function transpose(rows: Float32Array, numCols: number): Float32Array {
  const numRows = rows.length / numCols;
  return rows.map((_, i) => rows[(i % numRows) * numCols + Math.floor(i / numRows)]!);
}

/** Some rows of a tensor, one range below the other. */
function pickedSource(gguf: GgufFile, tensor: TensorInfo, ranges: readonly RowRange[], numCols: number): MatrixSource {
  const bytesPerRow = rowBytes(tensor.type, numCols);
  const ends = cut(ranges.map(({ numRows }) => numRows * bytesPerRow));
  return {
    name: tensor.name,
    type: tensor.type,
    numRows: sumOf(ranges.map(({ numRows }) => numRows)),
    numCols,
    readInto(target, byteOffset) {
      for (const [i, [first, end]] of ends.entries()) {
        const [from, to] = [Math.max(first, byteOffset), Math.min(end, byteOffset + target.length)];
        if (from >= to) continue;
        const inFile = ranges[i]!.start * bytesPerRow + from - first;
        gguf.readTensor(tensor, target.subarray(from - byteOffset, to - byteOffset), inFile);
      }
    },
  };
}

/** Rows [start, end) of a tensor as a matrix of `numCols` rows. */
function transposedSource(
  gguf: GgufFile,
  tensor: TensorInfo,
  [start, end]: readonly [number, number],
  numCols: number,
): MatrixSource {
  const type = quantFormats[tensor.type].blockSize === 1 ? tensor.type : 'F16';
  let bytes: Uint8Array | null = null;
  const read = (): Uint8Array => {
    const rows = new Uint8Array((end - start) * rowBytes(tensor.type, numCols));
    gguf.readTensor(tensor, rows, start * rowBytes(tensor.type, numCols));
    const values = new Float32Array((end - start) * numCols);
    const format = quantFormats[tensor.type];
    format.dequantize(rows, 0, values, 0, values.length / format.blockSize);
    const out = new Uint8Array(numCols * rowBytes(type, end - start));
    quantFormats[type].quantize!(transpose(values, numCols), 0, out, 0, values.length, null);
    return out;
  };
  return {
    name: tensor.name,
    type,
    numRows: numCols,
    numCols: end - start,
    readInto: (target, byteOffset) => target.set((bytes ??= read()).subarray(byteOffset, byteOffset + target.length)),
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

function checkedTensor(
  gguf: GgufFile,
  name: string,
  expected: readonly number[],
  onProblem?: (problem: RuvLLMError) => void,
): TensorInfo {
  try {
    return requireTensor(gguf, name, expected);
  } catch (error) {
    if (onProblem === undefined || !(error instanceof RuvLLMError)) throw error;
    onProblem(error);
    const numElements = productOf(expected);
    return { name, type: 'F32', dims: expected, numElements, sizeBytes: numElements * 4, offset: 0 };
  }
}

function requireTensor(gguf: GgufFile, name: string, expected: readonly number[]): TensorInfo {
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

/** The dimensions of a stack as files write them: without the last ones of 1. */
function withoutOnes(dims: readonly number[]): readonly number[] {
  const last = dims.findLastIndex((dim) => dim !== 1);
  return dims.slice(0, Math.max(1, last + 1));
}
