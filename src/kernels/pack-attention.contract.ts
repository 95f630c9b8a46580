import { describe, expect, test } from 'vitest';
import { floatToHalf, halfToFloat } from '../core/half.ts';
import { createRandom } from '../core/random.ts';
import { normals } from '../../test/support/random-values.ts';
import { type KernelPackFactory, kvLayerBytes, type KvPrecision, type KvRegion, PAGE_TOKENS } from './contract.ts';
import { EPSILON, expectClose, expectSameBits, norm, type PackFixture, withPack } from './pack-fixture.contract.ts';

const NUM_LAYERS = 2;
const LAYER = 1;

interface Shape {
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly window: number;
  readonly softcap: number;
  /** Of the pages; f16 unless given. */
  readonly precision?: KvPrecision;
}

/** A sequence's q, k and v for all its tokens, and the pages it was given. */
interface Sequence {
  readonly length: number;
  readonly q: Float32Array;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly pageIds: readonly number[];
}

const scaleOf = ({ headDim }: Shape): number => 1 / Math.sqrt(headDim);

/** Sequences of the given lengths over shuffled pages, so that none is contiguous. */
function makeSequences(shape: Shape, lengths: readonly number[], numPages: number): Sequence[] {
  const random = createRandom(lengths.length);
  const free = Array.from({ length: numPages }, (_, i) => ({ i, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ i }) => i);
  return lengths.map((length, i) => ({
    length,
    q: normals(length * shape.numHeads * shape.headDim, 3 * i + 1, 2),
    k: normals(length * shape.numKvHeads * shape.headDim, 3 * i + 2),
    v: normals(length * shape.numKvHeads * shape.headDim, 3 * i + 3),
    pageIds: free.splice(0, Math.ceil(length / PAGE_TOKENS)),
  }));
}

/** A region full of NaN: pages are reused without being cleared, even those of a sequence that failed. */
function makeRegion({ pack }: PackFixture, shape: Shape, numPages: number): KvRegion {
  const { numKvHeads, headDim, precision = 'f16' } = shape;
  const layerBytes = kvLayerBytes(numKvHeads, headDim, precision);
  const pageBytes = NUM_LAYERS * layerBytes;
  const base = pack.arena.allocate(numPages * pageBytes, 'pages');
  if (precision === 'f32') pack.arena.f32(base, (numPages * pageBytes) / 4).fill(NaN);
  else pack.arena.u16(base, (numPages * pageBytes) / 2).fill(floatToHalf(NaN));
  return { base, pageBytes, layerBytes, numPages, numKvHeads, headDim, precision };
}

interface Part {
  readonly sequence: Sequence;
  readonly start: number;
  readonly end: number;
}

/** Writes and attends the tokens [start, end) of each sequence in one step; returns their rows. */
async function runStep(
  fixture: PackFixture,
  kv: KvRegion,
  shape: Shape,
  parts: readonly Part[],
): Promise<Float32Array> {
  const { pack, put, putInts, output } = fixture;
  const rowsOf = (name: 'q' | 'k' | 'v', width: number): Float32Array =>
    Float32Array.from(
      parts.flatMap((part) => Array.from(part.sequence[name].subarray(part.start * width, part.end * width))),
    );
  const slots: number[] = [];
  const sequences: number[] = [];
  const pageTables: number[] = [];
  for (const { sequence, start, end } of parts) {
    sequences.push(slots.length, end - start, end, pageTables.length);
    pageTables.push(...sequence.pageIds);
    for (let t = start; t < end; t++) {
      slots.push(sequence.pageIds[Math.floor(t / PAGE_TOKENS)]! * PAGE_TOKENS + (t % PAGE_TOKENS));
    }
  }
  const kvWidth = shape.numKvHeads * shape.headDim;
  const width = shape.numHeads * shape.headDim;
  pack.writeKv({
    kv,
    layer: LAYER,
    k: put(rowsOf('k', kvWidth)),
    v: put(rowsOf('v', kvWidth)),
    slots: putInts(slots),
    numTokens: slots.length,
  });
  const out = output(slots.length * width);
  pack.attention({
    kv,
    layer: LAYER,
    q: put(rowsOf('q', width)),
    out: out.offset,
    numHeads: shape.numHeads,
    sequences: putInts(sequences),
    numSequences: parts.length,
    pageTables: putInts(pageTables),
    scale: scaleOf(shape),
    window: shape.window,
    softcap: shape.softcap,
  });
  return out.read();
}

/** Plain softmax attention of token t over the rounded k and v, and how far off a pack may be. */
function attendPlainly(shape: Shape, sequence: Sequence, t: number): { out: number[]; tolerance: number } {
  const { numHeads, numKvHeads, headDim, window, softcap } = shape;
  const rounded = (values: Float32Array, token: number, head: number): number[] =>
    Array.from(
      values.subarray((token * numKvHeads + head) * headDim, (token * numKvHeads + head + 1) * headDim),
      (x) => (shape.precision === 'f32' ? x : halfToFloat(floatToHalf(x))),
    );
  const out: number[] = [];
  let tolerance = 0;
  for (let head = 0; head < numHeads; head++) {
    const kvHead = Math.floor((head * numKvHeads) / numHeads);
    const q = sequence.q.subarray((t * numHeads + head) * headDim, (t * numHeads + head + 1) * headDim);
    const sums = new Float64Array(headDim);
    let [total, peakScore, peakValue] = [0, 0, 0];
    for (let token = window > 0 ? Math.max(0, t - window + 1) : 0; token <= t; token++) {
      const k = rounded(sequence.k, token, kvHead);
      const v = rounded(sequence.v, token, kvHead);
      let score = k.reduce((sum, value, d) => sum + value * q[d]!, 0) * scaleOf(shape);
      if (softcap > 0) score = softcap * Math.tanh(score / softcap);
      const weight = Math.exp(score);
      total += weight;
      for (let d = 0; d < headDim; d++) sums[d]! += weight * v[d]!;
      peakScore = Math.max(peakScore, norm(q) * norm(k) * scaleOf(shape));
      peakValue = Math.max(peakValue, ...v.map(Math.abs));
    }
    out.push(...Array.from(sums, (sum) => sum / total));
    tolerance = Math.max(tolerance, EPSILON * peakValue * (32 + 8 * peakScore));
  }
  return { out, tolerance };
}

function expectPlain(shape: Shape, parts: readonly Part[], result: Float32Array): void {
  const width = shape.numHeads * shape.headDim;
  let row = 0;
  for (const { sequence, start, end } of parts) {
    for (let t = start; t < end; t++, row++) {
      const { out, tolerance } = attendPlainly(shape, sequence, t);
      const what = `${JSON.stringify(shape)}, token ${t} of ${sequence.length}`;
      expectClose(result.subarray(row * width, (row + 1) * width), out, () => tolerance, what);
    }
  }
}

const plain: Shape = { numHeads: 4, numKvHeads: 2, headDim: 16, window: 0, softcap: 0 };
const shapes: Shape[] = [
  ...[8, 16, 64, 80, 96, 128, 256].map((headDim) => ({ ...plain, headDim })),
  { ...plain, numHeads: 3, numKvHeads: 3, headDim: 48 }, // every head its own
  { ...plain, numHeads: 7, numKvHeads: 1, headDim: 64 }, // all heads share one
  { ...plain, numHeads: 6, numKvHeads: 2, window: 1 },
  { ...plain, window: 5, headDim: 64 },
  { ...plain, window: 16 },
  { ...plain, window: 17, softcap: 2 },
  { ...plain, softcap: 50, headDim: 128 },
  { ...plain, precision: 'f32' },
  { ...plain, precision: 'f32', headDim: 20, window: 17 },
];

export function describeAttention(makeFactory: () => KernelPackFactory): void {
  describe('writeKv and attention', () => {
    test('writeKv rounds to f16 in the documented places and touches nothing else', async () => {
      const shape: Shape = { ...plain, headDim: 20 };
      await withPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, 3);
        const sequence = { ...makeSequences(shape, [18], 3)[0]!, pageIds: [2, 0] };
        await runStep(fixture, kv, shape, [{ sequence, start: 0, end: 18 }]);
        const expected = new Uint16Array((3 * kv.pageBytes) / 2).fill(floatToHalf(NaN));
        const perPage = kv.numKvHeads * kv.headDim * PAGE_TOKENS;
        for (let t = 0; t < 18; t++) {
          const base = (sequence.pageIds[Math.floor(t / 16)]! * kv.pageBytes + LAYER * kv.layerBytes) / 2;
          for (let head = 0; head < kv.numKvHeads; head++) {
            for (let d = 0; d < kv.headDim; d++) {
              const from = (t * kv.numKvHeads + head) * kv.headDim + d;
              expected[base + (head * kv.headDim + d) * 16 + (t % 16)] = floatToHalf(sequence.k[from]!);
              expected[base + perPage + (head * 16 + (t % 16)) * kv.headDim + d] = floatToHalf(sequence.v[from]!);
            }
          }
        }
        expect(fixture.pack.arena.u16(kv.base, expected.length)).toEqual(expected);
      });
    });

    test.each(shapes)('equals plain softmax attention: %o', async (shape) => {
      await withPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, 12);
        const sequences = makeSequences(shape, [1, 16, 17, 37], 12);
        const parts = sequences.map((sequence) => ({ sequence, start: 0, end: sequence.length }));
        expectPlain(shape, parts, await runStep(fixture, kv, shape, parts));
      });
    });

    test.each(shapes)('chunked equals whole and batched equals alone, bit for bit: %o', async (shape) => {
      const width = shape.numHeads * shape.headDim;
      const lengths = [37, 3, 20];
      await withPack(makeFactory(), async (fixture) => {
        const sequences = makeSequences(shape, lengths, 12);
        const whole: Float32Array[] = [];
        const first = makeRegion(fixture, shape, 12);
        for (const sequence of sequences) {
          whole.push(await runStep(fixture, first, shape, [{ sequence, start: 0, end: sequence.length }]));
        }
        // The same tokens in steps that mix the sequences: prefill of one beside single tokens of another.
        const second = makeRegion(fixture, shape, 12);
        const steps = [
          [5, 1, 0],
          [16, 1, 19],
          [15, 0, 1],
          [1, 1, 0],
        ];
        const done = lengths.map(() => 0);
        for (const step of steps) {
          const parts = step.flatMap((count, i) => {
            const start = done[i]!;
            done[i] = start + count;
            return count === 0 ? [] : [{ sequence: sequences[i]!, start, end: start + count }];
          });
          const result = await runStep(fixture, second, shape, parts);
          let row = 0;
          for (const { sequence, start, end } of parts) {
            const expected = whole[sequences.indexOf(sequence)]!.slice(start * width, end * width);
            expectSameBits(
              result.slice(row * width, (row + end - start) * width),
              expected,
              `tokens ${start} to ${end}`,
            );
            row += end - start;
          }
        }
        expect(done).toEqual(lengths);
      });
    });
  });
}
