import { RuvLLMError } from '../../../core/errors.ts';
import { addFour, createFourRuns } from './add-four.ts';
import { columnStart, type InputProducts } from './input-products.ts';

/**
 * The upper triangular R with H = R Rᵀ, in columns as `InputProducts`. The squared error of a row's outputs is |e R|², e being the errors
 * of its values. Entry j of e R depends on the errors of columns 0 to j only, so columns can be rounded in order, each against the
 * sum of the errors before it. R is the inverse of the factor of H⁻¹ in the GPTQ paper: the corrections are the same, and H is not inverted.
 */
export interface ErrorFactor {
  readonly numCols: number;
  readonly entries: Float64Array;
}

/** Of the mean of the diagonal, added to each entry of it (the paper, section 3.3, step 3): a few inputs do not span all columns. */
const DAMPING = 0.01;
/** Columns whose effect on the others is subtracted in one pass over these. */
const PANEL = 32;

const runs = createFourRuns();

/** Factors the damped products in place: the products are gone. Throws `bad_logits` if they are not finite or no input differs from zero. */
export function factorInPlace({ numCols, sums }: InputProducts, name: string): ErrorFactor {
  let trace = 0;
  for (let col = 0; col < numCols; col++) trace += sums[columnStart(col) + col]!;
  if (!(trace > 0 && trace < Infinity)) {
    throw new RuvLLMError(
      'bad_logits',
      `${name}: the squares of the inputs sum to ${trace}; --method gptq needs finite inputs that are not all zero`,
      { data: { name, trace } },
    );
  }
  const damping = (DAMPING * trace) / numCols;
  for (let col = 0; col < numCols; col++) sums[columnStart(col) + col]! += damping;
  for (let end = numCols; end > 0; end -= PANEL) {
    const start = Math.max(0, end - PANEL);
    for (let col = end - 1; col >= start; col--) {
      subtractColumns(sums, col, col + 1, end);
      finishColumn(sums, col, name);
    }
    for (let col = 0; col < start; col++) subtractColumns(sums, col, start, end);
  }
  return { numCols, entries: sums };
}

/** Subtracts the products of finished columns, `first` to `end` - 1, from an unfinished one before them. */
function subtractColumns(entries: Float64Array, col: number, first: number, end: number): void {
  for (let finished = first; finished < end; finished += 4) {
    for (let run = 0; run < 4; run++) {
      const other = Math.min(finished + run, end - 1);
      runs.starts[run] = columnStart(other);
      runs.factors[run] = finished + run < end ? -entries[columnStart(other) + col]! : 0;
    }
    addFour(entries, columnStart(col), col + 1, entries, runs);
  }
}

function finishColumn(entries: Float64Array, col: number, name: string): void {
  const start = columnStart(col);
  const pivot = Math.sqrt(entries[start + col]!);
  if (!(pivot > 0 && pivot < Infinity)) {
    throw new RuvLLMError('bad_logits', `${name}: the input products have pivot ${pivot} at column ${col}`, {
      data: { name, col, pivot },
    });
  }
  for (let i = 0; i < col; i++) entries[start + i]! /= pivot;
  entries[start + col] = pivot;
}
