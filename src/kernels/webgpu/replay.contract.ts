import { describe, expect, test } from 'vitest';
import { normals } from '../../../test/support/random-values.ts';
import type { KernelPack, KernelPackFactory, Offset } from '../contract.ts';
import { randomMatrix, withSmallPack } from '../pack-fixture.contract.ts';

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
  });
}
