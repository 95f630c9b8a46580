import { RuvLLMError } from '../core/errors.ts';
import { ADAPTER_LIMITS, adapterBytes } from './create-adapter.ts';
import { targetShape } from './target-shapes.ts';
import type { AdapterBase, AdapterTarget, LowRankFactors } from './types.ts';

/** A pair of factors in a file, not yet read: A is rank x numCols, B is numRows x rank, both row-major. */
export interface FactorSource {
  /** The name of the matrix in the file, for messages. */
  readonly name: string;
  readonly layer: number;
  /** One target, or the parts of a stacked matrix, in order. */
  readonly targets: readonly AdapterTarget[];
  readonly rank: number;
  readonly scale: number;
  readonly numCols: number;
  readonly numRows: number;
  readA(): Float32Array;
  readB(): Float32Array;
  /** Position of row `row` of a target in the file's matrix, relative to the target's first row; null: unchanged. */
  readonly rowOrder?: ((target: AdapterTarget) => ((row: number) => number) | null) | undefined;
}

/** Checks a pair against the model before reading, then reads it: one entry for each matrix it changes. */
export function readFactors(source: FactorSource, base: AdapterBase): LowRankFactors[] {
  const { name, layer, targets, rank, scale, numCols } = source;
  if (layer >= base.numLayers) {
    throw misfit(`${name} is in layer ${layer}, the model has ${base.numLayers} layers`, name);
  }
  const shapes = targets.map((target) => targetShape(target, base, layer));
  const numRows = shapes.reduce((sum, shape) => sum + shape.numRows, 0);
  if (source.numRows !== numRows || shapes.some((shape) => shape.numCols !== numCols)) {
    const shape = `${source.numRows} x ${numCols}`;
    const expected = `${numRows} x ${shapes[0]!.numCols}`;
    throw new RuvLLMError('invalid_model_file', `${name} changes a matrix of ${shape}, the model has ${expected}`, {
      data: { tensor: name, shape, expected },
    });
  }
  if (rank < 1 || rank > ADAPTER_LIMITS.maxRank) {
    throw new RuvLLMError('unsupported', `${name} has rank ${rank}, must be 1 to ${ADAPTER_LIMITS.maxRank}`, {
      data: { tensor: name, rank, limit: ADAPTER_LIMITS.maxRank },
    });
  }
  const a = source.readA();
  const b = source.readB();
  let firstRow = 0;
  return targets.map((target, i) => {
    const { numRows: count } = shapes[i]!;
    const rows = b.subarray(firstRow * rank, (firstRow + count) * rank);
    firstRow += count;
    const order = source.rowOrder?.(target) ?? null;
    const factors = { target, layer: target === 'output' ? -1 : layer, numCols, numRows: count, rank, scale, a };
    return { ...factors, b: order === null ? rows.slice() : reorderRows(rows, rank, order) };
  });
}

function reorderRows(rows: Float32Array, rank: number, order: (row: number) => number): Float32Array {
  const out = new Float32Array(rows.length);
  for (let row = 0; row * rank < rows.length; row++) {
    const from = order(row) * rank;
    out.set(rows.subarray(from, from + rank), row * rank);
  }
  return out;
}

const misfit = (message: string, tensor: string): RuvLLMError =>
  new RuvLLMError('invalid_model_file', message, { data: { tensor } });

/** Checked before the first read, because sizes come from the file. */
export function checkSourceBytes(fileName: string, sources: readonly FactorSource[]): void {
  const sizeBytes = adapterBytes(sources);
  if (sizeBytes <= ADAPTER_LIMITS.maxBytes) return;
  throw new RuvLLMError(
    'unsupported',
    `${fileName} has ${sizeBytes} bytes of factors, the limit is ${ADAPTER_LIMITS.maxBytes}`,
    { data: { sizeBytes, limitBytes: ADAPTER_LIMITS.maxBytes } },
  );
}
