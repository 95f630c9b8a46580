import { RuvLLMError } from '../../core/errors.ts';
import { writeErrorWeights } from '../../quant/error-weights.ts';
import { dequantizeRow, quantizeRow } from '../../quant/index.ts';
import type { ImportanceMatrix } from '../imatrix/imatrix.ts';
import { floatStrips, type QuantizeSource, type QuantizeTensor } from './quantize-source.ts';
import type { RequantizedTensor } from './requantize.ts';

/** Architectures whose norms and matrices are connected as in `groupsOf`. */
const ARCHITECTURES: readonly string[] = ['llama', 'qwen2', 'qwen3'];
/** Exponents of the search: 0 leaves the columns as they are. */
const EXPONENTS = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
/** Rows of each matrix that judge an exponent. */
const SAMPLE_ROWS = 48;

/** Matrices with the same input, and the tensor that is divided by the scales of their columns. */
interface Group {
  readonly matrices: readonly RequantizedTensor[];
  readonly producer: QuantizeTensor;
  /** Whether the producer is a vector, or a matrix whose rows are divided. */
  readonly isNorm: boolean;
}

interface Scaling {
  columns: Float32Array | null;
  /** Divides row r by its entry r. */
  rows: Float32Array | null;
}

/** A source whose columns are scaled, the importance of the scaled columns, and the chosen exponents. */
export interface ScaledSource {
  readonly source: QuantizeSource;
  readonly imatrix: ImportanceMatrix;
  readonly exponents: readonly number[];
}

/**
 * Activation-aware scaling: columns with large inputs are multiplied before rounding, and the norm or matrix that produces these inputs is
 * divided, so that the model computes the same. The exponent of each group is the one with the smallest error of the products.
 */
export function scaleColumns(
  source: QuantizeSource,
  plan: readonly RequantizedTensor[],
  imatrix: ImportanceMatrix,
): ScaledSource {
  const architecture = source.metadata.string('general.architecture');
  if (!ARCHITECTURES.includes(architecture)) {
    throw new RuvLLMError(
      'unsupported',
      `--method awq: ${architecture} is not supported (supported: ${ARCHITECTURES.join(', ')})`,
      { data: { architecture } },
    );
  }
  const scalings = new Map<string, Scaling>();
  const scalingOf = (name: string): Scaling => {
    if (!scalings.has(name)) scalings.set(name, { columns: null, rows: null });
    return scalings.get(name)!;
  };
  const scaledImatrix = new Map(imatrix);
  const exponents: number[] = [];
  for (const { matrices, producer, isNorm } of groupsOf(plan)) {
    const importance = imatrix.get(matrices[0]!.tensor.name);
    if (importance === undefined) continue;
    const exponent = chooseExponent(matrices, importance);
    exponents.push(exponent);
    if (exponent === 0) continue;
    const scales = scalesOf(importance, exponent);
    for (const { tensor } of matrices) {
      scalingOf(tensor.name).columns = scales;
      scaledImatrix.set(tensor.name, importance.map((value, col) => value / scales[col]! ** 2)); // prettier-ignore
    }
    // A norm is one row, whose columns are divided.
    if (isNorm) scalingOf(producer.name).columns = scales.map((scale) => 1 / scale);
    else scalingOf(producer.name).rows = scales;
  }
  const tensors = source.tensors.map((tensor) => scaleTensor(tensor, scalings.get(tensor.name)));
  return { source: { ...source, tensors }, imatrix: scaledImatrix, exponents };
}

function groupsOf(plan: readonly RequantizedTensor[]): Group[] {
  const entries = new Map(plan.map((entry) => [entry.tensor.name, entry]));
  const groups: Group[] = [];
  const add = (layer: string, producerName: string, isNorm: boolean, names: readonly string[]): void => {
    const matrices = names.map((name) => entries.get(`${layer}.${name}.weight`));
    const producer = entries.get(`${layer}.${producerName}.weight`)?.tensor;
    const found = matrices.filter((entry) => entry !== undefined);
    // A file with other names (stacked matrices, experts) keeps the columns that cannot be scaled exactly.
    if (producer === undefined || found.length !== matrices.length) return;
    const numInputs = found[0]!.tensor.dims[0]!;
    const isExact = isNorm ? producer.dims[0] === numInputs : producer.dims[1] === numInputs;
    if (isExact) groups.push({ matrices: found, producer, isNorm });
  };
  for (let layer = 0; entries.has(`blk.${layer}.attn_norm.weight`); layer++) {
    const prefix = `blk.${layer}`;
    add(prefix, 'attn_norm', true, ['attn_q', 'attn_k', 'attn_v']);
    add(prefix, 'ffn_norm', true, ['ffn_gate', 'ffn_up']);
    add(prefix, 'ffn_up', false, ['ffn_down']);
  }
  return groups;
}

/** Powers of the root mean square of each input, around 1. */
function scalesOf(importance: Float32Array, exponent: number): Float32Array {
  const mean = importance.reduce((sum, value) => sum + value, 0) / importance.length;
  return importance.map((value) => (Math.max(value, 1e-4 * mean) / mean) ** (exponent / 2));
}

function chooseExponent(matrices: readonly RequantizedTensor[], importance: Float32Array): number {
  const samples = matrices.map(({ tensor, type }) => ({ type, values: sampleRows(tensor) }));
  let best = 0;
  let bestError = Infinity;
  for (const exponent of EXPONENTS) {
    const scales = scalesOf(importance, exponent);
    let error = 0;
    for (const { type, values } of samples) error += productError(type, values, importance, scales);
    if (error >= bestError) continue;
    bestError = error;
    best = exponent;
  }
  return best;
}

function sampleRows(tensor: QuantizeTensor): Float32Array {
  const numCols = tensor.dims[0]!;
  const numRows = tensor.numElements / numCols;
  const stride = Math.max(1, Math.floor(numRows / SAMPLE_ROWS));
  const count = Math.min(SAMPLE_ROWS, numRows);
  const sample = new Float32Array(count * numCols);
  for (const { values, firstRow } of floatStrips(tensor)) {
    for (let row = 0; row < values.length / numCols; row++) {
      const index = (firstRow + row) / stride;
      if (Number.isInteger(index) && index < count) {
        sample.set(values.subarray(row * numCols, (row + 1) * numCols), index * numCols);
      }
    }
  }
  return sample;
}

/** The squared error of products with the mean inputs of a text: the sum of importance · (weight - stored weight)². */
function productError(
  type: RequantizedTensor['type'],
  values: Float32Array,
  importance: Float32Array,
  scales: Float32Array,
): number {
  const numCols = importance.length;
  const scaled = values.map((value, i) => value * scales[i % numCols]!);
  const weights = new Float32Array(scaled.length);
  const scaledImportance = importance.map((value, col) => value / scales[col]! ** 2);
  writeErrorWeights(scaled, scaledImportance, 0, numCols, weights);
  const read = new Float32Array(scaled.length);
  dequantizeRow(type, quantizeRow(type, scaled, weights), read, read.length);
  let error = 0;
  for (let i = 0; i < read.length; i++) error += scaledImportance[i % numCols]! * (scaled[i]! - read[i]!) ** 2;
  return error;
}

function scaleTensor(tensor: QuantizeTensor, scaling: Scaling | undefined): QuantizeTensor {
  if (scaling === undefined) return tensor;
  const { columns, rows } = scaling;
  const numCols = tensor.dims[0]!;
  return {
    ...tensor,
    type: 'F32',
    sizeBytes: tensor.numElements * 4,
    *chunks() {
      for (const { values, firstRow } of floatStrips(tensor)) {
        for (let i = 0; i < values.length; i++) {
          const row = firstRow + Math.floor(i / numCols);
          values[i]! *= (columns?.[i % numCols] ?? 1) / (rows?.[row] ?? 1);
        }
        yield new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      }
    },
  };
}
