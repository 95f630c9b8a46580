import { describe, expect, test } from 'vitest';
import { normals } from '../../../test/support/random-values.ts';
import { LAYER, makeRegion, runStep, sequencesOf, type Shape } from '../attention-fixture.contract.ts';
import type { KernelPack, KernelPackFactory, Offset } from '../contract.ts';
import { expectSameBits, randomMatrix, withSmallPack } from '../pack-fixture.contract.ts';

const [DIM, ROWS] = [256, 96];

/** The promises of `replay`, for a pack that has it. Packs may be shared by tests, so keys name a place. */
export function describeReplay(name: string, factory: () => KernelPackFactory): void {
  describe(`${name}: replay`, () => {
    /** norm(x) · weight into out, then out + out into twice. */
    async function run(check: (parts: Parts) => Promise<void>): Promise<void> {
      await withSmallPack(factory(), async ({ pack, put, matrix }) => {
        const weight = matrix('Q4_0', ROWS, DIM, randomMatrix('Q4_0', ROWS, DIM, 1).bytes);
        const [x, norm] = [put(normals(DIM, 2)), put(normals(DIM, 3))];
        const [scratch, out, twice] = [DIM, ROWS, ROWS].map((length) => pack.arena.allocate(length * 4, 'row'));
        const record = (): void => {
          const input = { weight: norm, epsilon: 1e-5, scratch: scratch! };
          const outputs = [{ weight, out: out!, bias: null, accumulate: false }];
          pack.matmul({ x, norm: input, numTokens: 1, outputs });
          pack.add({ x: out!, y: out!, out: twice!, count: ROWS });
        };
        const expectedOf = async (values: Float32Array): Promise<Float32Array> => {
          pack.arena.f32(x, DIM).set(values);
          record();
          await pack.sync();
          return pack.arena.f32(twice!, ROWS).slice();
        };
        await check({ pack, x, twice: twice!, record, expectedOf });
      });
    }
    interface Parts {
      readonly pack: KernelPack;
      readonly x: Offset;
      readonly twice: Offset;
      readonly record: () => void;
      readonly expectedOf: (values: Float32Array) => Promise<Float32Array>;
    }

    test('computes the same operations with new contents, and records them once', async () => {
      await run(async ({ pack, x, twice, record, expectedOf }) => {
        let numRecords = 0;
        for (let i = 0; i < 4; i++) {
          const values = normals(DIM, 10 + i);
          const expected = await expectedOf(values);
          pack.arena.f32(twice, ROWS).fill(0);
          pack.arena.f32(x, DIM).set(values);
          pack.replay!(`step ${x}`, () => {
            numRecords++;
            record();
          });
          await pack.sync([{ offset: twice, sizeBytes: ROWS * 4 }]);
          expect(pack.arena.f32(twice, ROWS)).toEqual(expected);
        }
        expect(numRecords).toBe(1);
      });
    });

    test('a sync of everything reads the results of a repeated step', async () => {
      await run(async ({ pack, x, twice, record, expectedOf }) => {
        for (let i = 0; i < 3; i++) {
          const values = normals(DIM, 20 + i);
          const expected = await expectedOf(values);
          pack.arena.f32(twice, ROWS).fill(0);
          pack.arena.f32(x, DIM).set(values);
          pack.replay!(`step ${x}`, record);
          await pack.sync();
          expect(pack.arena.f32(twice, ROWS)).toEqual(expected);
        }
      });
    });

    test('keeps the order of operations before and after a repeated step', async () => {
      await run(async ({ pack, x, twice, record, expectedOf }) => {
        const values = normals(DIM, 30);
        const shift = normals(DIM, 31);
        const shifted = values.map((value, i) => value + shift[i]!);
        const shiftAt = pack.arena.allocate(DIM * 4, 'shift');
        pack.arena.f32(shiftAt, DIM).set(shift);
        const expected = await expectedOf(shifted);
        for (let i = 0; i < 3; i++) {
          // In the last round something waits before the step.
          const isLast = i === 2;
          pack.arena.f32(x, DIM).set(isLast ? values : shifted);
          if (isLast) pack.add({ x, y: shiftAt, out: x, count: DIM });
          pack.replay!(`step ${x}`, record);
          pack.scale({ x: twice, count: ROWS, factor: 0.5 });
          await pack.sync([{ offset: twice, sizeBytes: ROWS * 4 }]);
          expect(pack.arena.f32(twice, ROWS)).toEqual(expected.map((value) => value / 2));
        }
      });
    });

    test('attends over other pages and contexts of the same tables', async () => {
      const shape: Shape = { numHeads: 4, numKvHeads: 2, headDim: 16, window: 0, softcap: 0 };
      const width = shape.numHeads * shape.headDim;
      await withSmallPack(factory(), async (fixture) => {
        const { pack } = fixture;
        const kv = makeRegion(fixture, shape, 8);
        const sequences = sequencesOf(shape, [40, 60], 8);
        const rows: Float32Array[] = [];
        for (const sequence of sequences) {
          rows.push(await runStep(fixture, kv, shape, [{ sequence, start: 0, end: sequence.length }]));
        }
        const [q, out] = ['q', 'out'].map((what) => pack.arena.allocate(width * 4, what)) as [Offset, Offset];
        const [table, pageTables] = [pack.arena.allocate(16, 'sequences'), pack.arena.allocate(64, 'pages')];
        const record = (): void => {
          const sizes = { numHeads: shape.numHeads, numSequences: 1, scale: 1 / Math.sqrt(shape.headDim) };
          const tables = { sequences: table, pageTables };
          pack.attention({ kv, layer: LAYER, q, out, ...sizes, ...tables, window: 0, softcap: 0 });
        };
        const steps = [
          { index: 0, token: 20 },
          { index: 0, token: 21 },
          { index: 1, token: 50 },
          { index: 1, token: 7 },
          { index: 0, token: 39 },
        ];
        for (const { index, token } of steps) {
          const { q: queries, pageIds } = sequences[index]!;
          pack.arena.f32(q, width).set(queries.subarray(token * width, (token + 1) * width));
          pack.arena.i32(table, 4).set([0, 1, token + 1, 0]);
          pack.arena.i32(pageTables, pageIds.length).set(pageIds);
          pack.replay!(`attention ${q}`, record);
          await pack.sync([{ offset: out, sizeBytes: width * 4 }]);
          const expected = rows[index]!.subarray(token * width, (token + 1) * width);
          expectSameBits(pack.arena.f32(out, width), expected, `token ${token}`);
        }
      });
    });
  });
}
