import { describe, expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { normals } from '../../test/support/random-values.ts';
import { quantFormats } from '../quant/index.ts';
import { activationRounding, roundRow } from './activation-rounding.ts';
import type { KernelPackFactory } from './contract.ts';
import { EPSILON, expectClose, expectSameBits, norm, randomMatrix, withSmallPack } from './pack-fixture.contract.ts';

const MAX_TOKENS = 17;
const MAX_ROWS = 64;
const tokenCounts = [1, 2, 3, 4, 5, 6, 7, 8, 9, MAX_TOKENS];
const rowCounts = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, MAX_ROWS];

/** Lengths up to two unrolled SIMD steps, and some beyond, for types without blocks. */
const freeLengths = [...Array.from({ length: 33 }, (_, i) => i + 1), 63, 100, 257];

interface Case {
  readonly type: TensorTypeName;
  readonly numCols: number;
  readonly bytes: Uint8Array;
  readonly rowBytes: number;
  readonly x: Float32Array;
  /** Token t and row r at t * MAX_ROWS + r. */
  readonly expected: Float64Array;
  readonly tolerances: Float64Array;
}

const cases = new Map<string, Case>();

/** Cached for all packs: do not write to it. */
function caseOf(type: TensorTypeName, numCols: number, seed: number): Case {
  const key = `${type} ${numCols} ${seed}`;
  let plain = cases.get(key);
  if (plain === undefined) cases.set(key, (plain = makeCase(type, numCols, seed)));
  return plain;
}

/** The plain product at full size; smaller cases are its upper left corner. */
function makeCase(type: TensorTypeName, numCols: number, seed: number): Case {
  const { bytes, values, rowBytes } = randomMatrix(type, MAX_ROWS, numCols, seed);
  const x = normals(MAX_TOKENS * numCols, seed + 1);
  x.fill(0, 0, Math.min(32, numCols)); // a block of zeros must not divide by zero
  const expected = new Float64Array(MAX_TOKENS * MAX_ROWS);
  const tolerances = new Float64Array(MAX_TOKENS * MAX_ROWS);
  const norms = Float64Array.from({ length: MAX_ROWS }, (_, r) => norm(values, r * numCols, (r + 1) * numCols));
  for (let t = 0; t < MAX_TOKENS; t++) {
    const row = roundRow(x.slice(t * numCols, (t + 1) * numCols), activationRounding[type]);
    const size = (8 + Math.sqrt(numCols)) * EPSILON * norm(row);
    for (let r = 0; r < MAX_ROWS; r++) {
      let sum = 0;
      for (let i = 0, at = r * numCols; i < numCols; i++, at++) sum += values[at]! * row[i]!;
      expected[t * MAX_ROWS + r] = sum;
      tolerances[t * MAX_ROWS + r] = size * norms[r]!;
    }
  }
  return { type, numCols, bytes, rowBytes, x, expected, tolerances };
}

/** Index into the full-size expectation for element i of a result with `numRows` columns. */
const corner = (numRows: number) => (i: number) => Math.floor(i / numRows) * MAX_ROWS + (i % numRows);

export function describeMatmul(makeFactory: () => KernelPackFactory, types: readonly TensorTypeName[]): void {
  describe.each(types)('matmul %s', (type) => {
    const { blockSize } = quantFormats[type];
    const shapes: { numCols: number; tokens: number[]; rows: number[] }[] =
      blockSize === 1
        ? [
            ...freeLengths.map((numCols) => ({ numCols, tokens: [1, 4, MAX_TOKENS], rows: [1, 5, 13] })),
            { numCols: 96, tokens: tokenCounts, rows: rowCounts },
          ]
        : [1, 2, 3].map((n) => ({ numCols: n * blockSize, tokens: tokenCounts, rows: rowCounts }));

    test('equals the plain product for every number of tokens, rows and columns', async () => {
      await withSmallPack(makeFactory(), async ({ pack, put, output, matrix }) => {
        for (const { numCols, tokens, rows } of shapes) {
          const { bytes, rowBytes, x, expected, tolerances } = caseOf(type, numCols, numCols);
          const offset = put(x);
          for (const numRows of rows) {
            const weight = matrix(type, numRows, numCols, bytes.subarray(0, numRows * rowBytes));
            const at = corner(numRows);
            for (const numTokens of tokens) {
              const out = output(numTokens * numRows);
              pack.matmul({
                x: offset,
                numTokens,
                outputs: [{ weight, out: out.offset, bias: null, accumulate: false }],
              });
              expectClose(
                await out.read(),
                Float64Array.from({ length: numTokens * numRows }, (_, i) => expected[at(i)]!),
                (i) => tolerances[at(i)]!,
                `${type} ${numRows}x${numCols}, ${numTokens} tokens`,
              );
            }
          }
        }
      });
    });

    // Packs walk several row groups at once if a matrix is tall enough for large chunks.
    test('gives a row of a tall matrix the same bits as in a small matrix', async () => {
      const numCols = blockSize === 1 ? 99 : 2 * blockSize;
      const [numRows, perSlice] = [301, 7];
      const { bytes, rowBytes } = randomMatrix(type, numRows, numCols, 11);
      const bias = normals(numRows, 13);
      await withSmallPack(makeFactory(), async ({ pack, put, output, matrix }) => {
        const tall = matrix(type, numRows, numCols, bytes);
        for (const numTokens of [1, 5]) {
          const x = put(normals(numTokens * numCols, 12));
          const start = normals(numTokens * numRows, 14);
          const tallResult = output(start.length, start);
          const tallOutput = { weight: tall, out: tallResult.offset, bias: put(bias), accumulate: true };
          pack.matmul({ x, numTokens, outputs: [tallOutput] });
          const result = await tallResult.read();
          for (let row = 0; row < numRows; row += perSlice) {
            const weight = matrix(type, perSlice, numCols, bytes.subarray(row * rowBytes, (row + perSlice) * rowBytes));
            const pick = (values: Float32Array): Float32Array =>
              Float32Array.from({ length: numTokens * perSlice }, (_, i) => {
                return values[Math.floor(i / perSlice) * numRows + row + (i % perSlice)]!;
              });
            const slice = output(numTokens * perSlice, pick(start));
            const sliceBias = put(bias.slice(row, row + perSlice));
            pack.matmul({ x, numTokens, outputs: [{ weight, out: slice.offset, bias: sliceBias, accumulate: true }] });
            expectSameBits(pick(result), await slice.read(), `${type}, rows from ${row}, ${numTokens} tokens`);
          }
        }
      });
    });

    test('gives a token the same bits alone and in a batch', async () => {
      const numCols = blockSize === 1 ? 99 : 3 * blockSize;
      const numRows = 13;
      const { bytes, rowBytes, x } = caseOf(type, numCols, 5);
      await withSmallPack(makeFactory(), async ({ pack, put, output, matrix }) => {
        const weight = matrix(type, numRows, numCols, bytes.subarray(0, numRows * rowBytes));
        for (const numTokens of tokenCounts) {
          const together = output(numTokens * numRows);
          const input = put(x.subarray(0, numTokens * numCols));
          pack.matmul({
            x: input,
            numTokens,
            outputs: [{ weight, out: together.offset, bias: null, accumulate: false }],
          });
          const batch = await together.read();
          for (let t = 0; t < numTokens; t++) {
            const alone = output(numRows);
            const row = put(x.subarray(t * numCols, (t + 1) * numCols));
            pack.matmul({
              x: row,
              numTokens: 1,
              outputs: [{ weight, out: alone.offset, bias: null, accumulate: false }],
            });
            expectSameBits(
              await alone.read(),
              batch.slice(t * numRows, (t + 1) * numRows),
              `token ${t} of ${numTokens}`,
            );
          }
        }
      });
    });
  });

  test('matmul writes several outputs of different types, with and without bias and accumulation', async () => {
    const numCols = 512;
    const types: TensorTypeName[] = ['Q4_K', 'F32', 'Q8_0', 'Q6_K', 'F16', 'Q4_0'];
    const cases = types.map((type) => caseOf(type, numCols, 7));
    const { x } = cases[0]!;
    for (const numTokens of [1, 3, 8]) {
      await withSmallPack(makeFactory(), async ({ pack, put, output, matrix }) => {
        const outputs = cases.map(({ type, bytes, rowBytes }, i) => {
          const numRows = [64, 13, 7, 32, 1, 9][i]!;
          const bias = i % 2 === 0 ? normals(numRows, 30 + i, 10) : null;
          const initial = i % 3 === 0 ? normals(numTokens * numRows, 40 + i, 10) : null;
          const out = output(numTokens * numRows, initial ?? undefined);
          const weight = matrix(type, numRows, numCols, bytes.subarray(0, numRows * rowBytes));
          return { weight, out, bias, initial, numRows };
        });
        pack.matmul({
          x: put(x),
          numTokens,
          outputs: outputs.map(({ weight, out, bias, initial }) => ({
            weight,
            out: out.offset,
            bias: bias === null ? null : put(bias),
            accumulate: initial !== null,
          })),
        });
        for (const [i, { weight, out, bias, initial, numRows }] of outputs.entries()) {
          const { expected, tolerances } = cases[i]!;
          const at = corner(numRows);
          const extra = (j: number): [number, number] => [bias?.[j % numRows] ?? 0, initial?.[j] ?? 0];
          expectClose(
            await out.read(),
            Float64Array.from({ length: numTokens * numRows }, (_, j) => expected[at(j)]! + extra(j)[0] + extra(j)[1]),
            (j) => tolerances[at(j)]! + 2 * EPSILON * (Math.abs(extra(j)[0]) + Math.abs(extra(j)[1])),
            `output ${i} (${weight.type}) of ${numTokens} tokens`,
          );
        }
      });
    }
  });

  test('matmul leaves its input unchanged and does nothing without tokens', async () => {
    const { bytes, x } = caseOf('Q8_0', 64, 3);
    await withSmallPack(makeFactory(), async ({ pack, put, output, matrix }) => {
      const weight = matrix('Q8_0', MAX_ROWS, 64, bytes);
      const input = put(x);
      const out = output(0);
      pack.matmul({ x: input, numTokens: 0, outputs: [{ weight, out: out.offset, bias: null, accumulate: false }] });
      await out.read();
      const full = output(MAX_TOKENS * MAX_ROWS);
      pack.matmul({
        x: input,
        numTokens: MAX_TOKENS,
        outputs: [{ weight, out: full.offset, bias: null, accumulate: false }],
      });
      await full.read();
      expect(pack.arena.f32(input, x.length)).toEqual(x);
    });
  });
}
