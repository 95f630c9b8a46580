import { describe, expect, test } from 'vitest';
import { floatToHalf, halfToFloat } from '../core/half.ts';
import { normals } from '../../test/support/random-values.ts';
import {
  type FloatKvPrecision,
  type KernelPackFactory,
  kvHeadBytes,
  kvLayerBytes,
  type KvPrecision,
  type KvRegion,
  type PackedKvPrecision,
  PAGE_TOKENS,
} from './contract.ts';
import {
  EPSILON,
  expectClose,
  expectSameBits,
  norm,
  type PackFixture,
  withSmallPack,
} from './pack-fixture.contract.ts';
import { packHead, unpackHead } from './packed-page-twin.contract.ts';

const NUM_LAYERS = 3;
const NUM_PAGES = 8;
const FILLER = 0xa5;

interface Shape {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly from: FloatKvPrecision;
  readonly to: PackedKvPrecision;
  readonly window?: number;
  readonly softcap?: number;
}

function makeRegion({ pack }: PackFixture, { numKvHeads, headDim }: Shape, precision: KvPrecision): KvRegion {
  const layerBytes = kvLayerBytes(numKvHeads, headDim, precision);
  const pageBytes = NUM_LAYERS * layerBytes + 64; // a page may be longer than its layers
  const base = pack.arena.allocate(NUM_PAGES * pageBytes, 'pages');
  pack.arena.u8(base, NUM_PAGES * pageBytes).fill(FILLER);
  return { base, pageBytes, layerBytes, numPages: NUM_PAGES, numKvHeads, headDim, precision };
}

const layerAt = (kv: KvRegion, page: number, layer: number): number =>
  kv.base + page * kv.pageBytes + layer * kv.layerBytes;

/** Fills K and V of all heads of a page's layer; returns them at the region's precision. */
function fillPage(
  { pack }: PackFixture,
  kv: KvRegion,
  page: number,
  layer: number,
  values: Float32Array,
): Float32Array {
  const at = layerAt(kv, page, layer);
  if (kv.precision === 'f32') pack.arena.f32(at, values.length).set(values);
  else pack.arena.u16(at, values.length).set(values.map(floatToHalf));
  return kv.precision === 'f32' ? values : values.map((value) => halfToFloat(floatToHalf(value)));
}

const pageFloats = ({ numKvHeads, headDim }: Shape): number => 2 * numKvHeads * headDim * PAGE_TOKENS;

/** K or V of one head of a full-precision page. */
function headOf({ numKvHeads, headDim }: Shape, page: Float32Array, part: 'k' | 'v', head: number): Float32Array {
  const count = headDim * PAGE_TOKENS;
  return page.subarray((head + (part === 'v' ? numKvHeads : 0)) * count).subarray(0, count);
}

const formats = (['q8', 'q4'] as const).flatMap((to) => (['f16', 'f32'] as const).map((from) => ({ from, to })));
const plain = { numHeads: 4, numKvHeads: 2, headDim: 16 };

export function describePackedPages(makeFactory: () => KernelPackFactory): void {
  describe('packed pages', () => {
    test.each(formats)(
      'packPages writes the documented bytes from $from to $to, and changes nothing else',
      async (kinds) => {
        await withSmallPack(makeFactory(), async (fixture) => {
          const { pack, putInts } = fixture;
          for (const headDim of [4, 20, 64]) {
            const shape = { ...plain, ...kinds, headDim };
            const [kv, packed] = [makeRegion(fixture, shape, kinds.from), makeRegion(fixture, shape, kinds.to)];
            const pairs = [5, 1, 0, 7, 6, 2];
            const expected = new Uint8Array(NUM_PAGES * packed.pageBytes).fill(FILLER);
            for (let page = 0; page < NUM_PAGES; page++) {
              for (let layer = 0; layer < NUM_LAYERS; layer++) {
                const values = normals(pageFloats(shape), page * NUM_LAYERS + layer);
                spoil(values, page);
                const pageValues = fillPage(fixture, kv, page, layer, values);
                const target = pairs[pairs.findIndex((id, i) => i % 2 === 0 && id === page) + 1]!;
                if (layer === 0 || !pairs.some((id, i) => i % 2 === 0 && id === page)) continue;
                for (let head = 0; head < shape.numKvHeads; head++) {
                  const [k, v] = [headOf(shape, pageValues, 'k', head), headOf(shape, pageValues, 'v', head)];
                  const at = layerAt(packed, target, layer) - packed.base + head * kvHeadBytes(headDim, kinds.to);
                  expected.set(packHead(kinds.to, headDim, k, v), at);
                }
              }
            }
            pack.packPages({ from: kv, to: packed, firstLayer: 1, numLayers: 2, pages: putInts(pairs), numPages: 3 });
            await pack.sync();
            const bytes = pack.arena.u8(packed.base, expected.length);
            const wrong = expected.findIndex((byte, i) => byte !== bytes[i]);
            const { pageBytes, layerBytes } = packed;
            const page = Math.floor(wrong / pageBytes);
            const layer = Math.floor((wrong % pageBytes) / layerBytes);
            const at = (wrong % pageBytes) % layerBytes;
            expect(wrong, `head of ${headDim}: byte ${at} of layer ${layer} of page ${page}, is ${bytes[wrong]}`).toBe(
              -1,
            );
          }
        });
      },
    );

    test.each(formats)('$from values in $to pages are off by at most half a step', async ({ from, to }) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, putInts } = fixture;
        const shape = { ...plain, from, to, headDim: 32 };
        const [kv, packed] = [makeRegion(fixture, shape, from), makeRegion(fixture, shape, to)];
        const values = normals(pageFloats(shape), 1).map((value, i) => value * 10 ** ((i % 97) / 16 - 4));
        const pageValues = fillPage(fixture, kv, 3, 0, values);
        pack.packPages({ from: kv, to: packed, firstLayer: 0, numLayers: 1, pages: putInts([3, 4]), numPages: 1 });
        await pack.sync();
        for (let head = 0; head < shape.numKvHeads; head++) {
          const at = layerAt(packed, 4, 0) + head * kvHeadBytes(32, to);
          const read = unpackHead(to, 32, pack.arena.u8(at, kvHeadBytes(32, to)));
          for (const part of ['k', 'v'] as const) {
            const length = part === 'k' ? PAGE_TOKENS : 32;
            const original = headOf(shape, pageValues, part, head);
            expectClose(
              read[part],
              original,
              (i) => {
                const row = original.subarray(i - (i % length), i - (i % length) + length);
                const peak = Math.max(...row.map(Math.abs));
                const step = to === 'q8' ? peak / 127 : (Math.max(...row) - Math.min(...row)) / 15;
                // f16 has eleven bits for a scale and a min, and multiples of 2^-24 for smaller ones.
                return (step / 2) * (1 + 2 ** -9) + (to === 'q4' && from === 'f32' ? peak * 2 ** -10 : 0) + 2 ** -24;
              },
              `${part} of head ${head}`,
            );
          }
        }
      });
    });

    const small = { numHeads: 2, numKvHeads: 1 };
    const shapes: Shape[] = [
      { ...plain, from: 'f16', to: 'q8' },
      { ...plain, from: 'f32', to: 'q4' },
      { ...small, headDim: 20, from: 'f32', to: 'q8' },
      { ...small, headDim: 20, from: 'f16', to: 'q4' },
      { ...small, headDim: 80, from: 'f16', to: 'q8' },
      { ...small, headDim: 80, from: 'f16', to: 'q4' },
      { ...plain, numHeads: 8, numKvHeads: 1, from: 'f16', to: 'q8', window: 20 },
      { ...small, headDim: 4, from: 'f32', to: 'q4', window: 17, softcap: 3 },
    ];
    test.each(shapes)(
      'attention over mixed page tables equals plain softmax of the decoded pages: %o',
      async (shape) => {
        await withSmallPack(makeFactory(), async (fixture) => {
          const context = await makeContext(fixture, shape);
          // Every remainder of a page, and every mixture of three pages and more; bit p of the mask: page p is packed.
          for (let length = 1; length <= 7 * PAGE_TOKENS; length += length < 18 ? 1 : 13) {
            const mask = length % 8 === 0 ? 0x7f : (length * 37) % 128;
            const numRows = Math.min(length, 1 + (length % 3));
            const result = await attend(fixture, context, [{ length, numRows, mask }]);
            expectPlain(context, { length, numRows, mask }, result);
          }
        });
      },
    );

    test.each(shapes)('batched equals alone over packed pages, bit for bit: %o', async (shape) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const context = await makeContext(fixture, shape);
        const width = shape.numHeads * shape.headDim;
        const parts = [
          { length: 100, numRows: 19, mask: 0b0001111 },
          { length: 64, numRows: 1, mask: 0b1010 },
          { length: 3, numRows: 2, mask: 1 },
          { length: 112, numRows: 5, mask: 0 },
        ];
        const together = await attend(fixture, context, parts);
        let row = 0;
        for (const { length, numRows, mask } of parts) {
          for (let i = 0; i < numRows; i++, row++) {
            const alone = { length: length - numRows + 1 + i, numRows: 1, mask };
            const result = await attend(fixture, context, [alone]);
            expectSameBits(together.slice(row * width, (row + 1) * width), result, `row ${i} of ${numRows}`);
          }
        }
      });
    });

    test('rejects writes to packed pages, and packed pages of another shape', async () => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const { pack, putInts } = fixture;
        const shape: Shape = { ...plain, from: 'f16', to: 'q8' };
        const [kv, packed] = [makeRegion(fixture, shape, 'f16'), makeRegion(fixture, shape, 'q8')];
        const zeros = putInts([0, 0, 0, 0]);
        const write = { layer: 0, k: zeros, v: zeros, slots: zeros, numTokens: 1 };
        expect(() => pack.writeKv({ ...write, kv: packed })).toThrowError(/writeKv on q8 pages/);
        const pages = { firstLayer: 0, numLayers: 1, pages: zeros, numPages: 1 };
        expect(() => pack.packPages({ ...pages, from: packed, to: packed })).toThrowError(/packPages on q8 pages/);
        expect(() => pack.packPages({ ...pages, from: kv, to: kv })).toThrowError(/packed pages are f16/);
        const other = { ...packed, headDim: 32 };
        expect(() => pack.packPages({ ...pages, from: kv, to: other })).toThrowError(/2 heads of 32 .* 2 heads of 16/);
        const step = { layer: 0, q: zeros, out: zeros, numHeads: 4, sequences: zeros, numSequences: 0 };
        const attention = { ...step, pageTables: zeros, scale: 1, window: 0, softcap: 0 };
        expect(() => pack.attention({ ...attention, kv: packed })).toThrowError(/attention on q8 pages/);
        expect(() => pack.attention({ ...attention, kv, packed: kv })).toThrowError(/packed pages are f16/);
      });
    });
  });
}

/** Adds rows that are hard to round to the first head of K and of V. */
function spoil(values: Float32Array, seed: number): void {
  const rows: ((i: number) => number)[] = [
    () => 0,
    (i) => (i % 2 === 0 ? 0 : -0),
    () => 1.5,
    () => -2.25,
    (i) => 3 + i * 2 ** -9,
    (i) => (i + 1) * 2 ** -24,
    (i) => -(i + 1) * 2 ** -14,
    (i) => (i === 3 ? 1000 : i / 64),
    (i) => (i === 5 ? 65504 : -i),
    (i) => (i === 2 ? NaN : i),
    (i) => (i === 7 ? Infinity : i),
    (i) => (i === 0 ? -Infinity : i),
    (i) => i - 8.5, // halves, at a step of 1
    (i) => -i * 8192,
  ];
  const start = seed % 2 === 0 ? 0 : values.length / 2;
  for (let r = 0; r < 2; r++) {
    const row = rows[(2 * seed + r) % rows.length]!;
    for (let i = 0; i < PAGE_TOKENS; i++) values[start + r * PAGE_TOKENS + i] = row(i);
  }
}

interface Context {
  readonly shape: Shape;
  readonly kv: KvRegion;
  readonly packed: KvRegion;
  /** By page: the layer's values in the full-precision and in the packed region. */
  readonly fullPages: readonly Float32Array[];
  readonly unpacked: readonly Float32Array[];
  readonly q: Float32Array;
}

const LAYER = 2;
/** The page of tokens 16 i and up, in either region. */
const PLAIN_PAGES = [3, 0, 6, 1, 7, 2, 4];
const PACKED_PAGES = [5, 2, 0, 7, 3, 1, 6];

/** Seven pages of tokens, full-precision and packed; a sequence's table selects between them. */
async function makeContext(fixture: PackFixture, shape: Shape): Promise<Context> {
  const { pack, putInts } = fixture;
  const [kv, packed] = [makeRegion(fixture, shape, shape.from), makeRegion(fixture, shape, shape.to)];
  const fullPages = PLAIN_PAGES.map((page, i) => fillPage(fixture, kv, page, LAYER, normals(pageFloats(shape), i + 1)));
  const pages = putInts(PLAIN_PAGES.flatMap((page, i) => [page, PACKED_PAGES[i]!]));
  pack.packPages({ from: kv, to: packed, firstLayer: LAYER, numLayers: 1, pages, numPages: fullPages.length });
  await pack.sync();
  const unpacked = PACKED_PAGES.map((page) => {
    const values = new Float32Array(pageFloats(shape));
    for (let head = 0; head < shape.numKvHeads; head++) {
      const size = kvHeadBytes(shape.headDim, shape.to);
      const { k, v } = unpackHead(
        shape.to,
        shape.headDim,
        pack.arena.u8(layerAt(packed, page, LAYER) + head * size, size),
      );
      headOf(shape, values, 'k', head).set(k);
      headOf(shape, values, 'v', head).set(v);
    }
    return values;
  });
  return { shape, kv, packed, fullPages, unpacked, q: normals(128 * shape.numHeads * shape.headDim, 99, 2) };
}

interface Part {
  readonly length: number;
  readonly numRows: number;
  readonly mask: number;
}

const scaleOf = ({ headDim }: Shape): number => 1 / Math.sqrt(headDim);

/** The rows of the last `numRows` tokens of each part; each token has its own query. */
async function attend(fixture: PackFixture, context: Context, parts: readonly Part[]): Promise<Float32Array> {
  const { shape, kv, packed } = context;
  const width = shape.numHeads * shape.headDim;
  const sequences: number[] = [];
  const tables: number[] = [];
  const q: number[] = [];
  for (const { length, numRows, mask } of parts) {
    sequences.push(q.length / width, numRows, length, tables.length);
    const numPages = Math.ceil(length / PAGE_TOKENS);
    for (let i = 0; i < numPages; i++) tables.push((mask >> i) & 1 ? ~PACKED_PAGES[i]! : PLAIN_PAGES[i]!);
    q.push(...context.q.subarray((length - numRows) * width, length * width));
  }
  const out = fixture.output(q.length);
  fixture.pack.attention({
    kv,
    packed: parts.some(({ mask }) => mask !== 0) ? packed : null,
    layer: LAYER,
    q: fixture.put(q),
    out: out.offset,
    numHeads: shape.numHeads,
    sequences: fixture.putInts(sequences),
    numSequences: parts.length,
    pageTables: fixture.putInts(tables),
    scale: scaleOf(shape),
    window: shape.window ?? 0,
    softcap: shape.softcap ?? 0,
  });
  return out.read();
}

function expectPlain(context: Context, { length, numRows, mask }: Part, result: Float32Array): void {
  const { shape, fullPages, unpacked } = context;
  const { numHeads, numKvHeads, headDim, window = 0, softcap = 0 } = shape;
  for (let i = 0; i < numRows; i++) {
    const token = length - numRows + i;
    for (let head = 0; head < numHeads; head++) {
      const at = (token * numHeads + head) * headDim;
      const q = context.q.subarray(at, at + headDim);
      const kvHead = Math.floor((head * numKvHeads) / numHeads);
      const sums = new Float64Array(headDim);
      let [total, peakScore, peakValue] = [0, 0, 0];
      for (let t = window > 0 ? Math.max(0, token - window + 1) : 0; t <= token; t++) {
        const index = Math.floor(t / PAGE_TOKENS);
        const page = ((mask >> index) & 1 ? unpacked : fullPages)[index]!;
        const keys = headOf(shape, page, 'k', kvHead);
        const k = Array.from(q, (_, d) => keys[d * PAGE_TOKENS + (t % PAGE_TOKENS)]!);
        const v = headOf(shape, page, 'v', kvHead)
          .subarray((t % PAGE_TOKENS) * headDim)
          .subarray(0, headDim);
        let score = k.reduce((sum, value, d) => sum + value * q[d]!, 0) * scaleOf(shape);
        if (softcap > 0) score = softcap * Math.tanh(score / softcap);
        const weight = Math.exp(score);
        total += weight;
        for (let d = 0; d < headDim; d++) sums[d]! += weight * v[d]!;
        peakScore = Math.max(peakScore, norm(q) * norm(k) * scaleOf(shape));
        peakValue = Math.max(peakValue, ...v.map(Math.abs));
      }
      const row = result.subarray((i * numHeads + head) * headDim, (i * numHeads + head + 1) * headDim);
      const tolerance = EPSILON * peakValue * (32 + 8 * peakScore);
      const what = `${length} tokens, pages ${mask.toString(2)}, row ${i}, head ${head}`;
      expectClose(row, sums.map((sum) => sum / total), () => tolerance, what); // prettier-ignore
    }
  }
}
