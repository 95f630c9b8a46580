import { RuvLLMError } from '../../../core/errors.ts';
import { addFour, createFourRuns } from './add-four.ts';

/**
 * The sum of x xᵀ over the inputs x of a matrix, f64, upper triangle only: column j has its j + 1 entries in a row, from
 * `columnStart(j)` on. The products are half of the Hessian of the squared error of the outputs, for each row of the matrix.
 */
export interface InputProducts {
  readonly numCols: number;
  readonly sums: Float64Array;
  /** Inputs so far. */
  numRows: number;
}

/** The first entry of a column; the entry of the diagonal is its last. */
export const columnStart = (col: number): number => (col * (col + 1)) / 2;

/** Memory of the products of so many columns. */
export const productBytes = (numCols: number): number => columnStart(numCols) * 8;

/** 14,480 columns, which includes all matrices of models of 8 billion weights. */
export const MAX_PRODUCT_BYTES = 800 * 2 ** 20;

/** Products of no inputs yet; throws `unsupported` if they would be larger than `MAX_PRODUCT_BYTES`. */
export function createInputProducts(numCols: number): InputProducts {
  checkProductBytes(numCols, 'a matrix');
  return { numCols, sums: new Float64Array(columnStart(numCols)), numRows: 0 };
}

/** Throws `unsupported` if the products of the inputs of a matrix are too large. */
export function checkProductBytes(numCols: number, name: string): void {
  const numBytes = productBytes(numCols);
  if (numBytes <= MAX_PRODUCT_BYTES) return;
  throw new RuvLLMError(
    'unsupported',
    `--method gptq: the input products of ${name} with ${numCols} columns need ${Math.ceil(numBytes / 2 ** 20)} MiB, ` +
      `at most ${MAX_PRODUCT_BYTES / 2 ** 20} MiB are used; use --method awq or round`,
    { data: { name, numCols, numBytes, maxBytes: MAX_PRODUCT_BYTES } },
  );
}

const runs = createFourRuns();

/** Adds the products of some inputs, f32[numRows × numCols]. */
export function addInputs(products: InputProducts, rows: Float32Array): void {
  const { numCols, sums } = products;
  const numRows = rows.length / numCols;
  // Four rows at a time; missing ones are zeros.
  const inputs = new Float64Array(Math.ceil(numRows / 4) * 4 * numCols);
  inputs.set(rows);
  for (let col = 0; col < numCols; col++) {
    for (let first = 0; first < inputs.length; first += 4 * numCols) {
      for (let run = 0; run < 4; run++) {
        runs.starts[run] = first + run * numCols;
        runs.factors[run] = inputs[first + run * numCols + col]!;
      }
      addFour(sums, columnStart(col), col + 1, inputs, runs);
    }
  }
  products.numRows += numRows;
}

/** Whether any input differs from zero. */
export const hasInputs = ({ numCols, sums }: InputProducts): boolean => {
  for (let col = 0; col < numCols; col++) if (sums[columnStart(col) + col] !== 0) return true;
  return false;
};
