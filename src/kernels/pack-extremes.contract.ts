import { describe, expect, test } from 'vitest';
import { floatToHalf } from '../core/half.ts';
import { createRandom } from '../core/random.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import { quantFormats } from '../quant/index.ts';
import { scaleFields, writeScale } from '../../test/support/random-blocks.ts';
import { normals } from '../../test/support/random-values.ts';
import { activationRounding, roundRow } from './activation-rounding.ts';
import { type KernelPackFactory, kvLayerBytes, type KvPrecision, type KvRegion } from './contract.ts';
import {
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  randomMatrix,
  withSmallPack,
} from './pack-fixture.contract.ts';

const NUM_ROWS = 21;
const NUM_COLS = 768;
const NUM_TOKENS = 6;
const SICK_TOKEN = 2;

/** Bytes with the extreme codes of some format: all bits, none, the sign, all but the sign, nibbles. */
const EXTREME_BYTES = [0x00, 0x7f, 0x80, 0xff, 0x0f, 0xf0, 0x88];

/** Blocks of extreme codes and sub-scales with plain scales; one byte per block in the first rows, mixed in the others. */
function extremeBlocks(type: TensorTypeName): Uint8Array {
  const { blockSize, blockBytes } = quantFormats[type];
  const bytes = new Uint8Array(((NUM_ROWS * NUM_COLS) / blockSize) * blockBytes);
  const view = new DataView(bytes.buffer);
  const random = createRandom(1);
  const rowBytes = bytes.length / NUM_ROWS;
  for (let i = 0; i < bytes.length; i++) {
    const row = Math.floor(i / rowBytes);
    bytes[i] = EXTREME_BYTES[row] ?? EXTREME_BYTES[Math.floor(random.next() * EXTREME_BYTES.length)]!;
  }
  const blockFields = scaleFields[type];
  if (blockFields === undefined) return bytes;
  for (let at = 0; at < bytes.length; at += blockBytes) {
    writeScale(type, view, at, 0.5);
    if (blockFields.min !== undefined) view.setUint16(at + blockFields.min, floatToHalf(-0.25), true);
  }
  return bytes;
}

/** Tokens whose values all round to ±127, in the patterns with the largest sums. */
function extremeTokens(): Float32Array {
  const random = createRandom(2);
  const signs: ((i: number) => number)[] = [
    () => 1,
    () => -1,
    (i) => (i % 2 === 0 ? 1 : -1),
    (i) => (i % 32 < 16 ? -1 : 1),
    () => (random.next() < 0.5 ? -1 : 1),
    (i) => (i === 100 ? -1 : 0),
  ];
  return Float32Array.from(
    { length: NUM_TOKENS * NUM_COLS },
    (_, i) => signs[Math.floor(i / NUM_COLS)]!(i % NUM_COLS) * 3,
  );
}

async function product(
  fixture: PackFixture,
  type: TensorTypeName,
  bytes: Uint8Array,
  x: Float32Array,
): Promise<Float32Array> {
  const numTokens = x.length / NUM_COLS;
  const out = fixture.output(numTokens * NUM_ROWS);
  fixture.pack.matmul({
    x: fixture.put(x),
    numTokens,
    outputs: [
      { weight: fixture.matrix(type, NUM_ROWS, NUM_COLS, bytes), out: out.offset, bias: null, accumulate: false },
    ],
  });
  return out.read();
}

const rowOf = (values: Float32Array, row: number, width: number): Float32Array =>
  values.slice(row * width, (row + 1) * width);

/** Values at the limits of the formats. Non-finite values must stay visible: a lost NaN is a wrong token. */
export function describeExtremes(makeFactory: () => KernelPackFactory, types: readonly TensorTypeName[]): void {
  const finiteFormats = types.filter((type) => scaleFields[type] !== undefined);

  test.each(finiteFormats)('matmul %s does not overflow with the largest codes and activations', async (type) => {
    const bytes = extremeBlocks(type);
    const weights = new Float32Array(NUM_ROWS * NUM_COLS);
    quantFormats[type].dequantize(bytes, 0, weights, 0, weights.length / quantFormats[type].blockSize);
    const x = extremeTokens();
    await withSmallPack(makeFactory(), async (fixture) => {
      for (const numTokens of [1, NUM_TOKENS]) {
        const result = await product(fixture, type, bytes, x.subarray(0, numTokens * NUM_COLS));
        for (let t = 0; t < numTokens; t++) {
          const token = roundRow(rowOf(x, t, NUM_COLS), activationRounding[type]);
          const rows = Array.from({ length: NUM_ROWS }, (_, r) => rowOf(weights, r, NUM_COLS));
          expectClose(
            rowOf(result, t, NUM_ROWS),
            rows.map((row) => row.reduce((sum, weight, i) => sum + weight * token[i]!, 0)),
            (r) => 64 * EPSILON * norm(rows[r]!) * norm(token),
            `token ${t} of ${numTokens}`,
          );
        }
      }
    });
  });

  const x = normals(NUM_TOKENS * NUM_COLS, 4);
  describe.each(types)('matmul %s', (type) => {
    const { bytes } = randomMatrix(type, NUM_ROWS, NUM_COLS, 3);

    test('passes a NaN or an infinity in a token to all its results and no others', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const healthy = await product(fixture, type, bytes, x);
        for (const [bad, at] of [NaN, Infinity, -Infinity].flatMap((bad) => [0, 31, 300, 767].map((at) => [bad, at]))) {
          const sick = x.slice();
          sick[SICK_TOKEN * NUM_COLS + at!] = bad!;
          const together = await product(fixture, type, bytes, sick);
          const alone = await product(fixture, type, bytes, rowOf(sick, SICK_TOKEN, NUM_COLS));
          for (const row of [alone, rowOf(together, SICK_TOKEN, NUM_ROWS)]) {
            expect(
              row.filter((value) => Number.isFinite(value)),
              `${bad} in column ${at}`,
            ).toHaveLength(0);
          }
          for (let t = 0; t < NUM_TOKENS; t++) {
            if (t === SICK_TOKEN) continue;
            expectSameBits(rowOf(together, t, NUM_ROWS), rowOf(healthy, t, NUM_ROWS), `token ${t}`);
          }
        }
      });
    });

    test('is right or visibly wrong for the largest and smallest magnitudes', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const healthy = await product(fixture, type, bytes, rowOf(x, 0, NUM_COLS));
        const peak = Math.max(...healthy.map(Math.abs));
        for (const exponent of [-149, -140, -126, -30, 30, 60, 100, 120]) {
          const scaled = rowOf(x, 0, NUM_COLS).map((value) => value * 2 ** exponent);
          const result = await product(fixture, type, bytes, scaled);
          for (let r = 0; r < NUM_ROWS; r++) {
            if (!Number.isFinite(result[r]!)) continue;
            // Half-precision scales end at 2^-24: below, results vanish.
            const lost = exponent < 0 ? 2 ** -18 * NUM_COLS : 0;
            const error = Math.abs(result[r]! / 2 ** exponent - healthy[r]!) * 2 ** Math.min(0, exponent);
            expect(error, `2^${exponent}, row ${r}: ${result[r]}`).toBeLessThanOrEqual(
              2 ** Math.min(0, exponent) * peak * 2 ** -6 + lost,
            );
          }
        }
      });
    });

    test('rejects non-finite weights or shows them in their rows', async () => {
      const { blockBytes } = quantFormats[type];
      const sick = bytes.slice();
      const view = new DataView(sick.buffer);
      const rowBytes = sick.length / NUM_ROWS;
      const last = 2 * rowBytes - blockBytes;
      const plainBits: Partial<Record<TensorTypeName, number>> = { F32: 0x7f800000, F16: 0x7c00, BF16: 0x7f80 };
      const bits = plainBits[type];
      if (type === 'F32') view.setUint32(last, bits!, true);
      else if (bits !== undefined) view.setUint16(last, bits, true);
      else writeScale(type, view, last, Infinity);
      const readBack = new Float32Array(quantFormats[type].blockSize);
      quantFormats[type].dequantize(sick, last, readBack, 0, 1);
      if (readBack.every((value) => Number.isFinite(value))) return; // NVFP4 has no such scale
      await withSmallPack(makeFactory(), async (fixture) => {
        try {
          fixture.matrix(type, NUM_ROWS, NUM_COLS, sick);
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_model_file', data: { type } });
          return;
        }
        for (const numTokens of [1, NUM_TOKENS]) {
          const result = await product(fixture, type, sick, x.subarray(0, numTokens * NUM_COLS));
          for (let i = 0; i < result.length; i++) {
            expect(Number.isFinite(result[i]!), `row ${i % NUM_ROWS}`).toBe(i % NUM_ROWS !== 1);
          }
        }
        const gathered = fixture.output(2 * NUM_COLS);
        const table = fixture.matrix(type, NUM_ROWS, NUM_COLS, sick);
        fixture.pack.gatherRows({ table, ids: fixture.putInts([0, 1]), out: gathered.offset, numRows: 2, scale: 1 });
        const values = await gathered.read();
        expect(values.subarray(0, NUM_COLS).every((value) => Number.isFinite(value))).toBe(true);
        expect(values.every((value) => Number.isFinite(value))).toBe(false);
      });
    });
  });

  test.each([NaN, Infinity, 3e19, -3e38])('rmsNorm of a row with %d is right or not finite', async (bad) => {
    await withSmallPack(makeFactory(), async ({ pack, put, output }) => {
      const x = normals(2 * 70, 5);
      x[75] = bad;
      const out = output(x.length);
      pack.rmsNorm({ x: put(x), weight: put(x.map(() => 1)), out: out.offset, numRows: 2, dim: 70, epsilon: 1e-6 });
      const result = await out.read();
      const isRight = Math.abs(result[75]! - Math.sign(bad) * Math.sqrt(70)) < 1e-3;
      expect(isRight || result.subarray(70).every((value) => Number.isNaN(value))).toBe(true);
      expect(result.subarray(0, 70).every((value) => Number.isFinite(value))).toBe(true);
    });
  });

  const fields = ['q', 'k', 'v'] as const;
  const precisions: KvPrecision[] = ['f16', 'f32'];
  const attentionCases = precisions.flatMap((precision) =>
    fields.flatMap((field) => [NaN, Infinity].map((bad) => [precision, field, bad] as const)),
  );
  test.each(attentionCases)('attention over %s pages shows a bad %s (%d) only to later tokens', async (...args) => {
    const [precision, field, bad] = args;
    const [numTokens, headDim, badToken] = [40, 16, 20];
    await withSmallPack(makeFactory(), async ({ pack, put, putInts, output }) => {
      const layerBytes = kvLayerBytes(1, headDim, precision);
      const base = pack.arena.allocate(3 * layerBytes, 'pages');
      const kv: KvRegion = { base, pageBytes: layerBytes, layerBytes, numPages: 3, numKvHeads: 1, headDim, precision };
      const values = {
        q: normals(numTokens * headDim, 1),
        k: normals(numTokens * headDim, 2),
        v: normals(numTokens * headDim, 3),
      };
      values[field][badToken * headDim + 3] = bad;
      const slots = putInts(Array.from({ length: numTokens }, (_, i) => i));
      pack.writeKv({ kv, layer: 0, k: put(values.k), v: put(values.v), slots, numTokens });
      const out = output(numTokens * headDim);
      pack.attention({
        kv,
        layer: 0,
        q: put(values.q),
        out: out.offset,
        numHeads: 1,
        sequences: putInts([0, numTokens, numTokens, 0]),
        numSequences: 1,
        pageTables: putInts([0, 1, 2]),
        scale: 0.25,
        window: 0,
        softcap: 0,
      });
      const result = await out.read();
      for (let t = 0; t < numTokens; t++) {
        const isFinite = rowOf(result, t, headDim).every((value) => Number.isFinite(value));
        // An infinite key has no weight if its score is -Infinity: only NaN must show in every later row.
        const mayBeFinite = field === 'q' ? t !== badToken : t < badToken || (field === 'k' && bad === Infinity);
        if (t < badToken || !mayBeFinite) expect(isFinite, `token ${t}`).toBe(mayBeFinite);
      }
    });
  });
}
