import { describe, expect, test } from 'vitest';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { normals } from '../../test/support/random-values.ts';
import {
  type InputNorm,
  type KernelPackFactory,
  kvLayerBytes,
  type KvPrecision,
  type KvRegion,
  type Offset,
  PAGE_TOKENS,
  type WeightMatrix,
} from './contract.ts';
import {
  expectSameBits,
  expectSameBytes,
  type PackFixture,
  randomMatrix,
  withSmallPack,
} from './pack-fixture.contract.ts';

/** Every width of a tile up to one more than a whole one, and around the second, third and fourth. */
export const TOKEN_COUNTS = [...Array.from({ length: 17 }, (_, i) => i + 1), 31, 32, 33, 47, 64];
const MAX_TOKENS = 64;
const NUM_COLS = 256;
const EPSILON_OF_NORM = 1e-5;

const weightOf = ({ matrix }: PackFixture, type: TensorTypeName, numRows: number, seed: number): WeightMatrix =>
  matrix(type, numRows, NUM_COLS, randomMatrix(type, numRows, NUM_COLS, seed).bytes);

/** Rows, and a norm of them with its scratch. */
function normInputs({ put, output }: PackFixture): { x: Offset; norm: InputNorm; values: Float32Array } {
  const values = normals(MAX_TOKENS * NUM_COLS, 1, 3);
  const scratch = output(values.length).offset;
  return { x: put(values), norm: { weight: put(normals(NUM_COLS, 2)), epsilon: EPSILON_OF_NORM, scratch }, values };
}

/** The rows after `rmsNorm`, in separate memory. */
function normalized({ pack, output }: PackFixture, x: Offset, norm: InputNorm | null, numTokens: number): Offset {
  if (norm === null) return x;
  const out = output(numTokens * NUM_COLS).offset;
  pack.rmsNorm({ x, weight: norm.weight, out, numRows: numTokens, dim: NUM_COLS, epsilon: norm.epsilon });
  return out;
}

/** Every rounding of activations, alone and with the others. */
const outputTypes: TensorTypeName[][] = [
  ['Q4_0', 'Q6_K', 'F16'],
  ['Q8_0', 'Q4_K', 'BF16', 'F32'],
  ['Q5_1', 'IQ4_XS', 'IQ4_NL', 'Q2_K'],
  ['F16'],
  ['BF16', 'BF16'],
];

const gatePairs: [TensorTypeName, TensorTypeName][] = [
  ['Q4_0', 'Q4_0'],
  ['Q4_K', 'Q6_K'],
  ['Q8_0', 'F16'],
  ['BF16', 'Q5_K'],
  ['F32', 'IQ4_NL'],
];

/** Fused operations only save passes over memory: the bits equal those of their parts. */
export function describeFused(makeFactory: () => KernelPackFactory): void {
  describe('fused operations', () => {
    test.each(outputTypes)('matmul with a norm into %s %s %s %s equals its parts', async (...types) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, output } = fixture;
        const { x, norm, values } = normInputs(fixture);
        const outputs = types.map((type, i) => {
          const numRows = [33, 5, 17, 20][i]!;
          const bias = i % 2 === 0 ? put(normals(numRows, 10 + i)) : null;
          return { weight: weightOf(fixture, type, numRows, 20 + i), bias, accumulate: i % 3 === 1 };
        });
        for (const numTokens of TOKEN_COUNTS) {
          const places = outputs.map(({ weight, accumulate }) => {
            const start = accumulate ? normals(numTokens * weight.numRows, 30) : undefined;
            return [output(numTokens * weight.numRows, start), output(numTokens * weight.numRows, start)] as const;
          });
          const fused = outputs.map((each, i) => ({ ...each, out: places[i]![0].offset }));
          pack.matmul({ x, norm, numTokens, outputs: fused });
          const rows = normalized(fixture, x, norm, numTokens);
          for (const [i, each] of outputs.entries()) {
            pack.matmul({ x: rows, numTokens, outputs: [{ ...each, out: places[i]![1].offset }] });
          }
          for (const [i, [ours, expected]] of places.entries()) {
            expectSameBits(await ours.read(), await expected.read(), `${types[i]} of ${types}, ${numTokens} tokens`);
          }
        }
        expect(pack.arena.f32(x, values.length)).toEqual(values);
      });
    });

    const gates = gatePairs.flatMap((pair) => (['silu', 'gelu'] as const).map((kind) => [...pair, kind] as const));
    test.each(gates)('gatedMatmul of %s and %s with %s equals its parts', async (gateType, upType, activation) => {
      const numRows = 37;
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, output } = fixture;
        const { x, norm: someNorm, values } = normInputs(fixture);
        const gateWeight = weightOf(fixture, gateType, numRows, 3);
        const upWeight = weightOf(fixture, upType, numRows, 4);
        const [gateBias, upBias] = [put(normals(numRows, 5)), put(normals(numRows, 6))];
        for (const [i, numTokens] of [...TOKEN_COUNTS, 1, 16, 17].entries()) {
          // Every count covers some of these combinations, and together they cover all eight.
          const norm = i % 3 === 0 ? null : someNorm;
          const gate = { weight: gateWeight, bias: i % 2 === 0 ? gateBias : null };
          const up = { weight: upWeight, bias: i % 4 < 2 ? upBias : null };
          const count = numTokens * numRows;
          const [fused, gated, factor] = [output(count), output(count), output(count)];
          const scratch = output(count).offset;
          pack.gatedMatmul({ x, norm, numTokens, gate, up, out: fused.offset, scratch, activation });
          const rows = normalized(fixture, x, norm, numTokens);
          const products = [
            { ...gate, out: gated.offset, accumulate: false },
            { ...up, out: factor.offset, accumulate: false },
          ];
          for (const product of products) pack.matmul({ x: rows, numTokens, outputs: [product] });
          const place = { gate: gated.offset, up: factor.offset, out: gated.offset };
          pack.gatedActivation({ ...place, count, activation });
          expectSameBits(await fused.read(), await gated.read(), `${numTokens} tokens, case ${i}`);
        }
        expect(pack.arena.f32(x, values.length)).toEqual(values);
      });
    });

    const precisions: KvPrecision[] = ['f16', 'f32'];
    const turns = precisions.flatMap((precision) =>
      (['adjacent', 'halves'] as const).flatMap((pairing) =>
        [false, true].map((hasNorms) => ({ precision, pairing, hasNorms })),
      ),
    );
    test.each(turns)('rotateAndStore equals its parts: %o', async ({ precision, pairing, hasNorms }) => {
      const [numHeads, numKvHeads, headDim, rotaryDim] = [6, 3, 20, 12];
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, put, putInts, output } = fixture;
        const layerBytes = kvLayerBytes(numKvHeads, headDim, precision);
        const numPages = MAX_TOKENS / PAGE_TOKENS + 1;
        const makePages = (): KvRegion => {
          const pageBytes = 2 * layerBytes;
          const base = pack.arena.allocate(numPages * pageBytes, 'pages');
          return { base, pageBytes, layerBytes, numPages, numKvHeads, headDim, precision };
        };
        const [ourPages, theirPages] = [makePages(), makePages()];
        const layer = 1;
        const cosSin = put(normals(MAX_TOKENS * rotaryDim, 1));
        const v = put(normals(MAX_TOKENS * numKvHeads * headDim, 2));
        // Backwards from the middle of a page: the caller chooses the slots.
        const slots = putInts(Array.from({ length: MAX_TOKENS }, (_, t) => MAX_TOKENS + 7 - t));
        const [qNorm, kNorm] = hasNorms ? [put(normals(headDim, 3)), put(normals(headDim, 4))] : [null, null];
        const turn = { cosSin, headDim, rotaryDim, pairing, epsilon: 1e-6, layer, v, slots, numHeads, qNorm, kNorm };
        for (const numTokens of TOKEN_COUNTS) {
          const q = normals(numTokens * numHeads * headDim, 5);
          const k = normals(numTokens * numKvHeads * headDim, 6);
          const [ourQ, ourK] = [output(q.length, q), output(k.length, k)];
          const op = { ...turn, numTokens };
          pack.rotateAndStore({ ...op, kv: ourPages, q: ourQ.offset, k: ourK.offset });
          const [theirQ, theirK] = [output(q.length, q), output(k.length, k)];
          for (const [{ offset: x }, heads, weight] of [
            [theirQ, numHeads, qNorm],
            [theirK, numKvHeads, kNorm],
          ] as const) {
            const numRows = numTokens * heads;
            if (weight !== null) pack.rmsNorm({ x, weight, out: x, numRows, dim: headDim, epsilon: op.epsilon });
            pack.rope({ ...op, x, numHeads: heads });
          }
          pack.writeKv({ ...op, kv: theirPages, k: theirK.offset });
          expectSameBits(await ourQ.read(), await theirQ.read(), `q, ${numTokens} tokens`);
          expectSameBits(await ourK.read(), await theirK.read(), `k, ${numTokens} tokens`);
          const bytesOf = (pages: KvRegion): Uint8Array => pack.arena.u8(pages.base, numPages * pages.pageBytes);
          expectSameBytes(bytesOf(ourPages), bytesOf(theirPages), `pages, ${numTokens} tokens`);
        }
      });
    });
  });
}
