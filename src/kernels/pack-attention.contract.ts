import { describe, expect, test } from 'vitest';
import { floatToHalf } from '../core/half.ts';
import { expectPlain, LAYER, makeRegion, sequencesOf, runStep, type Shape } from './attention-fixture.contract.ts';
import { type KernelPackFactory, PAGE_TOKENS } from './contract.ts';
import { expectSameBits, withSmallPack } from './pack-fixture.contract.ts';

const plain: Shape = { numHeads: 4, numKvHeads: 2, headDim: 16, window: 0, softcap: 0 };
const shapes: Shape[] = [
  ...[8, 16, 64, 80, 96, 128, 256, 512].map((headDim) => ({ ...plain, headDim })),
  { ...plain, numHeads: 3, numKvHeads: 3, headDim: 48 }, // no sharing
  { ...plain, numHeads: 7, numKvHeads: 1, headDim: 64 }, // all heads share one
  { ...plain, numHeads: 20, numKvHeads: 1, headDim: 576 }, // latent attention
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
    test('writeKv rounds to f16 in the documented places and changes nothing else', async () => {
      const shape: Shape = { ...plain, headDim: 20 };
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, 3);
        const sequence = { ...sequencesOf(shape, [18], 3)[0]!, pageIds: [2, 0] };
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
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, 12);
        const sequences = sequencesOf(shape, [1, 16, 17, 37], 12);
        const parts = sequences.map((sequence) => ({ sequence, start: 0, end: sequence.length }));
        expectPlain(shape, parts, await runStep(fixture, kv, shape, parts));
      });
    });

    test.each(shapes)('chunked equals whole and batched equals alone, bit for bit: %o', async (shape) => {
      const width = shape.numHeads * shape.headDim;
      const lengths = [37, 3, 20];
      await withSmallPack(makeFactory(), async (fixture) => {
        const sequences = sequencesOf(shape, lengths, 12);
        const whole: Float32Array[] = [];
        const first = makeRegion(fixture, shape, 12);
        for (const sequence of sequences) {
          whole.push(await runStep(fixture, first, shape, [{ sequence, start: 0, end: sequence.length }]));
        }
        // The same tokens in steps that mix the sequences: prefill of one with single tokens of another.
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
