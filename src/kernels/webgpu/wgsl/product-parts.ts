import { range, unroll } from './common.ts';
import type { IntegerLayout } from './layouts.ts';

/** Outputs of one dispatch of `vectorKernel`. */
export const MAX_OUTPUTS = 3;
/** Lanes that share a row; block b belongs to lane b % LANES in every kernel. */
export const LANES = 32;

const OUTPUT_PARAMS = range(MAX_OUTPUTS).flatMap((i) => [
  `weight${i}`,
  `rows${i}`,
  `allRows${i}`,
  `out${i}`,
  `bias${i}`,
  `flags${i}`,
]);

/** Parameters of a product, in the order that `products.ts` writes: words of an output are weight, rows, rows of the whole matrix, out, bias, flags. */
export const PRODUCT_PARAMS = ['numTokens', 'blocks', 'x', 'gate', ...OUTPUT_PARAMS];

/** Flags of an output. */
export const HAS_BIAS = 1;
export const ACCUMULATES = 2;

/** The sum of a block's second half. */
export const secondHalf = ({ hasHalves }: IntegerLayout): string => (hasHalves ? 'y' : 'x');

export const finish = (sum: string, token: string, row: string): string => `{
      var value = ${sum};
      if ((flags & ${HAS_BIAS}u) != 0u) { value += num(bias + ${row}); }
      let at = out + ${token} * allRows + ${row};
      if ((flags & ${ACCUMULATES}u) != 0u) { value = num(at) + value; }
      put(at, value);
    }`;

/** The gate's output, the only one that is written. */
export const FIRST_OUTPUT = (unit: string): string =>
  `let index = ${unit}; let weight = p.weight0; let rows = p.rows0; let allRows = p.allRows0; let out = p.out0; let bias = p.bias0; let flags = p.flags0;`;

/** The output that a workgroup computes, and its place among the workgroups of that output. */
export const chooseOutput = (unit: string, perUnit: number): string => `
  var index = ${unit};
  var chosen = 0u;
  var weight = p.weight0; var rows = p.rows0; var allRows = p.allRows0; var out = p.out0; var bias = p.bias0; var flags = p.flags0;
  ${unroll(
    MAX_OUTPUTS - 1,
    (i) => `{
    let units = (p.rows${i} + ${perUnit - 1}u) / ${perUnit}u;
    if (chosen == ${i}u && index >= units && p.rows${i + 1} > 0u) {
      chosen = ${i + 1}u;
      index -= units;
      weight = p.weight${i + 1}; rows = p.rows${i + 1}; allRows = p.allRows${i + 1}; out = p.out${i + 1}; bias = p.bias${i + 1}; flags = p.flags${i + 1};
    }
  }`,
  )}`;
