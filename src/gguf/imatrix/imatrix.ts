import type { ByteSource } from '../../core/byte-source.ts';
import { invalidFile, quote } from '../failures.ts';
import { openGguf } from '../reader.ts';
import type { GgufFile, TensorInfo } from '../types.ts';
import type { GgufToWrite, TensorToWrite } from '../writer.ts';
import type { ImportanceMatrix } from './importance-matrix.ts';
import { readLegacyImatrix } from './legacy-imatrix.ts';

export type { ImportanceMatrix } from './importance-matrix.ts';

/** Sums over the rows that a matrix multiplied. */
export interface ImportanceSums {
  /** f64[numMatrices × numCols]: sums of squares. */
  readonly sums: Float64Array;
  /** Rows of each matrix. */
  readonly counts: Float64Array;
}

/** The text of an importance matrix. */
export interface ImatrixSource {
  /** Name of the text. */
  readonly dataset: string;
  readonly numChunks: number;
  readonly chunkTokens: number;
}

const SUMS = '.in_sum2';
const COUNTS = '.counts';
const GGUF_MAGIC = 0x46554747;

/** Describes an importance matrix as llama.cpp stores it: sums of squares and counts for each tensor. */
export function describeImatrix(
  sums: ReadonlyMap<string, ImportanceSums>,
  { dataset, numChunks, chunkTokens }: ImatrixSource,
): GgufToWrite {
  const tensors: TensorToWrite[] = [];
  const add = (name: string, dims: readonly number[], values: Float64Array): void => {
    tensors.push({ name, type: 'F32', dims, data: () => [new Uint8Array(Float32Array.from(values).buffer)] });
  };
  for (const [name, { sums: squares, counts }] of [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    add(`${name}${SUMS}`, [squares.length / counts.length, counts.length], squares);
    add(`${name}${COUNTS}`, [1, counts.length], counts);
  }
  return {
    metadata: [
      { key: 'general.type', type: 'string', value: 'imatrix' },
      { key: 'imatrix.datasets', type: 'array<string>', value: [dataset] },
      { key: 'imatrix.chunk_count', type: 'u32', value: numChunks },
      { key: 'imatrix.chunk_size', type: 'u32', value: chunkTokens },
    ],
    tensors,
  };
}

/** Reads an importance matrix of llama.cpp: GGUF, or the older binary format. */
export function readImatrix(source: ByteSource): ImportanceMatrix {
  const magic = new Uint8Array(4);
  if (source.sizeBytes >= 4) source.readInto(magic, 0);
  const isGguf = new DataView(magic.buffer).getUint32(0, true) === GGUF_MAGIC;
  const matrix = isGguf ? readGgufImatrix(openGguf(source), source.name) : readLegacyImatrix(source);
  for (const [name, values] of matrix) {
    const index = values.findIndex((value) => !(value >= 0 && value < Infinity));
    if (index >= 0) invalidFile(`${source.name}: value ${values[index]} at index ${index} of ${quote(name)}`);
  }
  return matrix;
}

function readGgufImatrix(gguf: GgufFile, fileName: string): ImportanceMatrix {
  const kind = gguf.metadata.string('general.type', 'model');
  if (kind !== 'imatrix') invalidFile(`${fileName} is not an importance matrix: its general.type is ${quote(kind)}`);
  const matrix = new Map<string, Float32Array>();
  for (const tensor of gguf.tensors.values()) {
    if (!tensor.name.endsWith(SUMS)) continue;
    const name = tensor.name.slice(0, -SUMS.length);
    const sums = readFloats(gguf, tensor);
    const counts = readFloats(gguf, gguf.tensor(`${name}${COUNTS}`));
    const numCols = tensor.dims[0]!;
    if (counts.length * numCols !== sums.length) {
      invalidFile(
        `${fileName}: ${quote(name)} has ${sums.length} sums of ${numCols} columns, but ${counts.length} counts`,
      );
    }
    matrix.set(name, meanSquares({ sums, counts }));
  }
  if (matrix.size === 0) invalidFile(`${fileName} has no entries: no tensor ends in ${SUMS}`);
  return matrix;
}

/** The importance of columns whose squared inputs were summed. */
export function meanSquares({ sums, counts }: { sums: ArrayLike<number>; counts: ArrayLike<number> }): Float32Array {
  const numCols = sums.length / counts.length;
  // An expert that no token chose is as important as any: its columns weigh the same.
  return Float32Array.from(sums, (sum, i) => {
    const count = counts[Math.floor(i / numCols)]!;
    return count > 0 ? sum / count : 1;
  });
}

function readFloats(gguf: GgufFile, tensor: TensorInfo): Float32Array {
  if (tensor.type !== 'F32')
    invalidFile(`tensor ${quote(tensor.name)} is ${tensor.type}, an importance matrix has F32`);
  const values = new Float32Array(tensor.numElements);
  gguf.readTensor(tensor, new Uint8Array(values.buffer));
  return values;
}
