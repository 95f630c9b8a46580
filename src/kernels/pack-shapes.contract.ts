import { describe, expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { campaign } from '../../test/support/campaign.ts';
import { normals } from '../../test/support/random-values.ts';
import { quantFormats } from '../quant/index.ts';
import { activationRounding, roundRow } from './activation-rounding.ts';
import type { KernelPackFactory, MatmulOutput } from './contract.ts';
import {
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  randomMatrix,
  withSmallPack,
} from './pack-fixture.contract.ts';

/** A matrix, rows of activations, and their plain product: token t and row r at t * numRows + r. */
interface Problem {
  readonly type: TensorTypeName;
  readonly numRows: number;
  readonly numCols: number;
  readonly bytes: Uint8Array;
  readonly x: Float32Array;
  readonly expected: Float64Array;
  readonly tolerances: Float64Array;
}

const problems = new Map<string, Problem>();
const activations = new Map<string, Float32Array>();

/** Types with blocks of one size have the same activations. */
function activationsOf(numCols: number, numTokens: number): Float32Array {
  const key = `${numCols} ${numTokens}`;
  let x = activations.get(key);
  if (x === undefined) activations.set(key, (x = normals(numTokens * numCols, numCols + 1)));
  return x;
}

/** Cached for all packs of a test file. */
function problemOf(type: TensorTypeName, numRows: number, numCols: number, numTokens: number): Problem {
  const key = `${type} ${numRows} ${numCols} ${numTokens}`;
  let problem = problems.get(key);
  if (problem === undefined) problems.set(key, (problem = makeProblem(type, numRows, numCols, numTokens)));
  return problem;
}

function makeProblem(type: TensorTypeName, numRows: number, numCols: number, numTokens: number): Problem {
  const { bytes, values } = randomMatrix(type, numRows, numCols, numCols + numRows);
  const x = activationsOf(numCols, numTokens);
  const expected = new Float64Array(numTokens * numRows);
  const tolerances = new Float64Array(numTokens * numRows);
  const norms = Float64Array.from({ length: numRows }, (_, r) => norm(values, r * numCols, (r + 1) * numCols));
  for (let t = 0; t < numTokens; t++) {
    const row = roundRow(x.slice(t * numCols, (t + 1) * numCols), activationRounding[type]);
    const size = (8 + Math.sqrt(numCols)) * EPSILON * norm(row);
    for (let r = 0; r < numRows; r++) {
      let sum = 0;
      for (let i = 0, at = r * numCols; i < numCols; i++, at++) sum += values[at]! * row[i]!;
      expected[t * numRows + r] = sum;
      tolerances[t * numRows + r] = size * norms[r]!;
    }
  }
  return { type, numRows, numCols, bytes, x, expected, tolerances };
}

/** The product of the first `numRows` rows and `numTokens` tokens from `firstToken` on. */
async function multiply(
  { pack, put, output, matrix }: PackFixture,
  { type, numCols, bytes, x }: Problem,
  { numRows, numTokens, firstToken = 0 }: { numRows: number; numTokens: number; firstToken?: number },
): Promise<Float32Array> {
  const { blockSize, blockBytes } = quantFormats[type];
  const weight = matrix(type, numRows, numCols, bytes.subarray(0, numRows * (numCols / blockSize) * blockBytes));
  const out = output(numTokens * numRows);
  const rows = put(x.subarray(firstToken * numCols, (firstToken + numTokens) * numCols));
  const target: MatmulOutput = { weight, out: out.offset, bias: null, accumulate: false };
  pack.matmul({ x: rows, numTokens, outputs: [target] });
  return out.read();
}

/** By block size: one block wider than any pack's strip of columns, and wider than two strips. */
const wideCols: Readonly<Record<number, readonly number[]>> = {
  1: [2051],
  32: [2080, 4192],
  64: [2112, 4224],
  128: [2176, 4224],
  256: [2304, 4352],
};
/** One type per weight layout (c/pack.h, wasm/layouts.ts). */
const layoutTypes: TensorTypeName[] = [
  'F32',
  'F16',
  'BF16',
  'Q4_0',
  'Q8_0',
  'Q4_1',
  'Q4_K',
  'Q6_K',
  'IQ4_NL',
  'IQ2_XXS',
  'MXFP4',
  'IQ3_XXS',
  'IQ3_S',
  'IQ2_XS',
  'NVFP4',
  'IQ1_M',
];

/** Shapes at which packs change their algorithm: wide, many, tall. */
export function describeShapes(makeFactory: () => KernelPackFactory, types: readonly TensorTypeName[]): void {
  const layouts = layoutTypes.filter((type) => types.includes(type));
  describe('matmul at shapes where the algorithm changes', () => {
    const wide = types.flatMap((type) =>
      wideCols[quantFormats[type].blockSize]!.slice(0, layoutTypes.includes(type) ? 2 : 1).map((numCols) => {
        return [type, numCols] as const;
      }),
    );
    test.each(wide)(
      '%s of %d columns equals the plain product, and a token has the same bits in any batch',
      async (...shape) => {
        const [type, numCols] = shape;
        const [numRows, most] = [17, 40];
        await withSmallPack(
          makeFactory(),
          async (fixture) => {
            const problem = problemOf(type, numRows, numCols, most);
            const all = await multiply(fixture, problem, { numRows, numTokens: most });
            expectClose(all, problem.expected, (i) => problem.tolerances[i]!, 'all tokens');
            for (const [numTokens, firstToken] of [
              [1, 0],
              [1, 23],
              [5, 3],
              [8, 30],
              [15, 1],
              [16, 20],
              [17, 11],
            ] as const) {
              const some = await multiply(fixture, problem, { numRows, numTokens, firstToken });
              const expected = all.slice(firstToken * numRows, (firstToken + numTokens) * numRows);
              expectSameBits(some, expected, `${numTokens} tokens from ${firstToken}`);
            }
          },
          { maxCols: 4352 },
        );
      },
    );

    test.each(layouts)('%s is correct with more tokens than one pass takes', async (type) => {
      const numCols = Math.max(64, quantFormats[type].blockSize);
      const [numRows, most, perCall] = [19, 530, 53];
      await withSmallPack(
        makeFactory(),
        async (fixture) => {
          const problem = problemOf(type, numRows, numCols, most);
          const all = await multiply(fixture, problem, { numRows, numTokens: most });
          expectClose(all, problem.expected, (i) => problem.tolerances[i]!, 'all tokens');
          const fewer = await multiply(fixture, problem, { numRows, numTokens: 513 });
          expectSameBits(fewer, all.slice(0, 513 * numRows), '513 tokens');
          for (let firstToken = 0; firstToken < most; firstToken += perCall) {
            const some = await multiply(fixture, problem, { numRows, numTokens: perCall, firstToken });
            const expected = all.slice(firstToken * numRows, (firstToken + perCall) * numRows);
            expectSameBits(some, expected, `${perCall} tokens from ${firstToken}`);
          }
        },
        { maxTokens: 544 },
      );
    });

    // One thread: chunks have their largest size, so that several row groups are walked at once.
    test.each(layouts)('%s is correct for every number of rows around five chunks', async (type) => {
      const numCols = Math.max(32, quantFormats[type].blockSize);
      const [least, numRows, most] = [256, 336, 40];
      await withSmallPack(
        makeFactory(),
        async (fixture) => {
          const problem = problemOf(type, numRows, numCols, most);
          const all = await multiply(fixture, problem, { numRows, numTokens: most });
          expectClose(all, problem.expected, (i) => problem.tolerances[i]!, 'all rows');
          // Five and sixteen have no common factor: the short form covers every remainder of a row group, too.
          for (let rows = least; rows < numRows; rows += campaign({ short: 5, long: 1 })) {
            const counts = [1, 2 + (rows % 7), ...((rows - least) % 15 === 0 ? [16, 17, 39] : [])];
            for (const numTokens of counts) {
              const some = await multiply(fixture, problem, { numRows: rows, numTokens });
              const expected = some.map((_, i) => all[Math.floor(i / rows) * numRows + (i % rows)]!);
              expectSameBits(some, expected, `${rows} rows, ${numTokens} tokens`);
            }
          }
          expect(fixture.pack.numThreads).toBe(1);
        },
        { numThreads: 1, arenaBytes: 2 ** 27 },
      );
    });
  });
}
