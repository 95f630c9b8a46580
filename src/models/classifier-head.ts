import type { GgufFile } from '../gguf/index.ts';
import { readValues, readVector } from './weight-loader.ts';

/** The score of a pair of texts, from the final hidden state of its first token. */
export type ClassifierHead = (hidden: Float32Array) => number;

/** `pooling_type` of files whose head scores pairs of texts. */
const RANK = 4;

interface Layer {
  /** f32[numRows × numCols] */
  readonly weight: Float32Array;
  readonly bias: Float32Array | null;
  readonly numRows: number;
}

/**
 * Reads the head of a cross-encoder: `cls` with tanh, which is optional, then `cls.output`. Null: the file has none, or
 * one with several labels.
 */
export function readClassifierHead(gguf: GgufFile): ClassifierHead | null {
  const architecture = gguf.metadata.string('general.architecture');
  if (architecture !== 'bert' || gguf.metadata.number(`${architecture}.pooling_type`, 0) !== RANK) return null;
  const numLabels = gguf.tensors.get('cls.output.weight')?.dims[1] ?? 1;
  if (!gguf.tensors.has('cls.output.weight') || numLabels !== 1) return null;
  const dim = gguf.metadata.number(`${architecture}.embedding_length`);
  const dense = gguf.tensors.has('cls.weight') ? readLayer(gguf, 'cls', dim, dim) : null;
  const output = readLayer(gguf, 'cls.output', dim, 1);
  return (hidden) => applyLayer(output, dense === null ? hidden : applyLayer(dense, hidden).map(Math.tanh))[0]!;
}

function readLayer(gguf: GgufFile, name: string, numCols: number, numRows: number): Layer {
  const weight = readValues(gguf, `${name}.weight`, numRows === 1 ? [numCols] : [numCols, numRows]);
  const bias = gguf.tensors.has(`${name}.bias`) ? readVector(gguf, `${name}.bias`, numRows) : null;
  return { weight, bias, numRows };
}

function applyLayer({ weight, bias, numRows }: Layer, x: Float32Array): Float32Array {
  const out = new Float32Array(numRows);
  for (let row = 0, at = 0; row < numRows; row++) {
    let sum = bias?.[row] ?? 0;
    for (let i = 0; i < x.length; i++, at++) sum += weight[at]! * x[i]!;
    out[row] = sum;
  }
  return out;
}
