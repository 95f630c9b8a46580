import { describe, expect, test } from 'vitest';
import { campaign } from '../../test/support/campaign.ts';
import { createRandom } from '../core/random.ts';
import { expectPlain, makeRegion, sequencesOf, type Part, runStep, type Shape } from './attention-fixture.contract.ts';
import { type KernelPackFactory, PAGE_TOKENS } from './contract.ts';
import { expectSameBits, withSmallPack } from './pack-fixture.contract.ts';

/** Around one, four and eight pages, and more. */
const contexts = [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200];
const pagesOf = (lengths: readonly number[]): number =>
  lengths.reduce((sum, length) => sum + Math.ceil(length / PAGE_TOKENS), 1);

const headDims = [4, 20, 48, 64, 80, 96, 128, 256, 512];
const groups = [1, 2, 3, 4, 5, 7, 8, 16];
/** Every head dimension and group of heads: once in the short form, twice in different combinations in the long one. */
const headShapes = headDims.flatMap((headDim, i): Shape[] =>
  campaign({ short: [0], long: [0, 3] }).map((shift) => {
    const group = groups[(i + shift) % groups.length]!;
    const numKvHeads = group > 4 || headDim > 100 ? 1 : 2;
    const isFloat = (i + shift) % 4 === 1;
    return {
      numHeads: group * numKvHeads,
      numKvHeads,
      headDim,
      window: [0, 70][(i + shift) % 2]!,
      softcap: i % 3 === 2 ? 20 : 0,
      precision: isFloat ? 'f32' : 'f16',
    };
  }),
);
/** One token, around a page and a span, and beyond several. */
const windows = [1, 2, 15, 16, 17, 48, 63, 64, 65, 100, 128];

const small: Shape = { numHeads: 3, numKvHeads: 1, headDim: 20, window: 0, softcap: 0 };
const rowsOf = (values: Float32Array, { numHeads, headDim }: Shape, from: number, to: number): Float32Array =>
  values.slice(from * numHeads * headDim, to * numHeads * headDim);

/** Contexts, windows, heads and batches where errors in page walks show first. */
export function describeAttentionEdges(makeFactory: () => KernelPackFactory): void {
  describe('attention at edges of pages, spans, windows and batches', () => {
    test.each(headShapes)('last rows of every context equal plain attention, together and alone: %o', async (shape) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, pagesOf(contexts));
        const sequences = sequencesOf(shape, contexts, kv.numPages);
        const parts = sequences.map((sequence, i): Part => {
          const from = Math.max(0, sequence.length - 1 - (i % 5));
          return { sequence, start: 0, end: sequence.length, from };
        });
        const together = await runStep(fixture, kv, shape, parts);
        expectPlain(shape, parts, together);
        let row = 0;
        for (const { sequence, end, from } of parts) {
          row += end - from!;
          const alone = await runStep(fixture, kv, shape, [{ sequence, start: end - 1, end }]);
          expectSameBits(alone, rowsOf(together, shape, row - 1, row), `context ${end}`);
        }
      });
    });

    test.each([0, 70])('sinks take part in the softmax without a value, with a window of %d', async (window) => {
      // Far below, among and far above the scores: the last one takes nearly all of the weight.
      const shape: Shape = { numHeads: 4, numKvHeads: 2, headDim: 48, window, softcap: 0, sinks: [-90, 0.5, 3, 60] };
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, pagesOf(contexts));
        const sequences = sequencesOf(shape, contexts, kv.numPages);
        const parts = sequences.map((sequence): Part => ({ sequence, start: 0, end: sequence.length }));
        expectPlain(shape, parts, await runStep(fixture, kv, shape, parts), (t) => t % 9 === 0);
      });
    });

    test.each(windows)('a window of %d is correct at every position', async (window) => {
      const shape = { ...small, window };
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, pagesOf([200]));
        const [sequence] = sequencesOf(shape, [200], kv.numPages);
        const part = { sequence: sequence!, start: 0, end: 200 };
        const whole = await runStep(fixture, kv, shape, [part]);
        expectPlain(shape, [part], whole);
        for (let t = window % 7; t < 200; t += 7) {
          // The pages hold later tokens too, which must be masked.
          const alone = await runStep(fixture, kv, shape, [{ sequence: sequence!, start: t, end: t + 1 }]);
          expectSameBits(alone, rowsOf(whole, shape, t, t + 1), `token ${t}`);
        }
      });
    });

    test.each([
      { ...small, window: 40 },
      { ...small, numHeads: 4, numKvHeads: 2, headDim: 8, softcap: 10 },
    ])('any number of last rows, 1 to 70, has the bits of all rows: %o', async (shape) => {
      await withSmallPack(makeFactory(), async (fixture) => {
        const kv = makeRegion(fixture, shape, pagesOf([130, 75]));
        const [long, other] = sequencesOf(shape, [130, 75], kv.numPages);
        const ends = { long: { sequence: long!, start: 0, end: 130 }, other: { sequence: other!, start: 0, end: 75 } };
        const [whole, otherWhole] = [
          await runStep(fixture, kv, shape, [ends.long]),
          await runStep(fixture, kv, shape, [ends.other]),
        ];
        // Three and sixteen have no common factor: the short form covers every remainder of a page, too.
        for (let n = 1; n <= 70; n += campaign({ short: 3, long: 1 })) {
          const both = await runStep(fixture, kv, shape, [
            { ...ends.other, start: 75 - ((n * 3) % 70) - 1 },
            { ...ends.long, start: 130 - n },
          ]);
          const split = ((n * 3) % 70) + 1;
          expectSameBits(rowsOf(both, shape, 0, split), rowsOf(otherWhole, shape, 75 - split, 75), `${split} of other`);
          expectSameBits(rowsOf(both, shape, split, split + n), rowsOf(whole, shape, 130 - n, 130), `${n} rows`);
        }
      });
    });

    test.each([
      { ...small, window: 0 },
      { ...small, numHeads: 2, headDim: 64, window: 50 },
      { ...small, numHeads: 8, headDim: 4, precision: 'f32' as const },
    ])('any split of prompts over calls gives the bits of one call: %o', async (shape) => {
      const lengths = [200, 70, 33];
      await withSmallPack(makeFactory(), async (fixture) => {
        const first = makeRegion(fixture, shape, pagesOf(lengths));
        const sequences = sequencesOf(shape, lengths, first.numPages);
        const all = sequences.map((sequence) => ({ sequence, start: 0, end: sequence.length }));
        const whole = await runStep(fixture, first, shape, all);
        expectPlain(shape, all, whole, (t) => t % 16 < 2 || t % 64 === 63);
        for (const seed of campaign({ short: [1, 3], long: [1, 2, 3] })) {
          const random = createRandom(seed);
          const kv = makeRegion(fixture, shape, first.numPages, [NaN, Infinity, -60000][seed - 1]);
          const done = lengths.map(() => 0);
          while (done.some((count, i) => count < lengths[i]!)) {
            const parts = sequences.flatMap((sequence, i): Part[] => {
              const start = done[i]!;
              // Mostly short steps, some long ones, and skipped sequences.
              const numTokens = random.next() < 0.4 ? 0 : Math.ceil(70 * random.next() ** 3);
              const end = Math.min(sequence.length, start + numTokens);
              done[i] = end;
              return end === start ? [] : [{ sequence, start, end }];
            });
            if (parts.length === 0) continue;
            const result = await runStep(fixture, kv, shape, parts);
            let row = 0;
            for (const { sequence, start, end } of parts) {
              const before = lengths.slice(0, sequences.indexOf(sequence)).reduce((sum, n) => sum + n, 0);
              const expected = rowsOf(whole, shape, before + start, before + end);
              const ours = rowsOf(result, shape, row, row + end - start);
              expectSameBits(ours, expected, `seed ${seed}, tokens ${start} to ${end} of ${sequence.length}`);
              row += end - start;
            }
          }
        }
      });
    });

    test.each([0, 1, 40, 64])(
      'a NaN in a key or value reaches only the rows that see it; window %d',
      async (window) => {
        const shape = { ...small, headDim: 12, window };
        await withSmallPack(makeFactory(), async (fixture) => {
          const kv = makeRegion(fixture, shape, pagesOf([200]));
          const sequence = sequencesOf(shape, [200], kv.numPages)[0]!;
          const healthy = await runStep(fixture, kv, shape, [{ sequence, start: 0, end: 200 }]);
          for (const [i, at] of [0, 15, 16, 63, 64, 100, 199].entries()) {
            const field = i % 2 === 0 ? 'k' : 'v';
            const sick = { ...sequence, [field]: sequence[field].slice() };
            sick[field].fill(NaN, at * shape.headDim + i, at * shape.headDim + i + 1);
            const result = await runStep(fixture, kv, shape, [{ sequence: sick, start: 0, end: 200 }]);
            for (let t = 0; t < 200; t++) {
              const row = rowsOf(result, shape, t, t + 1);
              const isSeen = t >= at && (window === 0 || t < at + window);
              if (!isSeen) expectSameBits(row, rowsOf(healthy, shape, t, t + 1), `token ${t}, NaN at ${at}`);
              else
                expect(
                  row.some((value) => Number.isNaN(value)),
                  `token ${t}, NaN in ${field} at ${at}`,
                ).toBe(true);
            }
          }
        });
      },
    );
  });
}
