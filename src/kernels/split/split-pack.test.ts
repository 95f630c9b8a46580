import { afterAll, describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { createRandom } from '../../core/random.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import type { KernelPackFactory } from '../contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { describeExperts } from '../pack-experts.contract.ts';
import { allTypes, disposeSharedPack, type PackFixture, withPack } from '../pack-fixture.contract.ts';
import { describePrograms } from '../pack-programs.contract.ts';
import { createWasmPackFactory } from '../wasm/wasm-pack.ts';
import { describeReplay } from '../webgpu/replay.contract.ts';
import { MISSING_OPERATIONS } from '../webgpu/webgpu-pack.ts';
import { createFakeDeviceFactory } from './fake-device.contract.ts';
import { otherSide, type Side, SIDES } from './sides.ts';
import { createSplitPackFactory } from './split-pack.ts';

const SEED = 2611;
const wasm = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

const device = createFakeDeviceFactory(wasm, MISSING_OPERATIONS);

/** The side of every operation, matrix and region of pages by lot. */
function drawSides(gpu: KernelPackFactory, seed: number, sideOfMatrix?: () => Side): KernelPackFactory {
  const random = createRandom(seed);
  const draw = (): Side => (random.next() < 0.5 ? 'gpu' : 'cpu');
  const sidesOfPages = new Map<number, Side>();
  const sideOfOperation = (_: string, pages: number | null): Side => {
    if (pages === null) return draw();
    if (!sidesOfPages.has(pages)) sidesOfPages.set(pages, draw());
    return sidesOfPages.get(pages)!;
  };
  return createSplitPackFactory({ gpu, cpu: wasm, sideOfOperation, sideOfMatrix: sideOfMatrix ?? draw });
}

/** A matrix lies on one side, whatever its type: the short form has each rounding of activations and some block sizes. */
const types: readonly TensorTypeName[] = campaign({
  short: ['F32', 'F16', 'BF16', 'Q4_0', 'Q8_0', 'Q4_K', 'Q6_K', 'IQ4_NL'],
  long: allTypes,
});
const lots = drawSides(wasm, SEED);
const deviceLots = drawSides(device, SEED);
// The matrices of one layer's experts are on one side.
if (campaign({ short: false, long: true })) {
  describeKernelPack(`two processor packs, seed ${SEED}`, () => lots, ['experts', 'programs']);
} else
  console.log('a split over two processor packs is tested in the long form only; one with a device is tested here');
describeKernelPack(
  `a device and a processor pack, seed ${SEED}`,
  () => deviceLots,
  ['experts', 'programs', 'vectors'],
  types,
);
describeReplay(`a device and a processor pack, seed ${SEED}`, () => deviceLots);
for (const side of SIDES) {
  const sides = { sideOfMatrix: () => side, sideOfOperation: () => otherSide(side) };
  const factory = createSplitPackFactory({ gpu: device, cpu: wasm, ...sides });
  describeReplay(`matrices on the ${side} side, other operations on the other`, () => factory);
}
for (const side of SIDES) {
  const factory = drawSides(createFakeDeviceFactory(wasm), SEED, () => side);
  describe(`experts on the ${side} side, seed ${SEED}`, () => {
    afterAll(disposeSharedPack);
    describeExperts(() => factory);
    describePrograms(() => factory);
  });
}

describe('changes of the side', () => {
  /** Runs `body` with a pack whose operations run on these sides, one after the other. */
  async function withSides(sides: readonly Side[], body: (fixture: PackFixture) => Promise<void>): Promise<void> {
    const left = [...sides];
    const sideOfOperation = (): Side => left.shift()!;
    const factory = createSplitPackFactory({ gpu: device, cpu: wasm, sideOfMatrix: () => 'cpu', sideOfOperation });
    await withPack(factory, body, { arenaBytes: 2 ** 16, numThreads: 1 });
    expect(left).toEqual([]);
  }
  const values = (value: number): Float32Array => new Float32Array(8).fill(value);

  test('an operation of the processor waits for its input from the device', () =>
    withSides(['gpu', 'cpu', 'gpu'], async ({ pack, put, output }) => {
      const [x, twice, four, eight] = [put(values(1)), output(8), output(8), output(8)];
      pack.add({ x, y: x, out: twice.offset, count: 8 });
      pack.add({ x: twice.offset, y: twice.offset, out: four.offset, count: 8 });
      pack.add({ x: four.offset, y: four.offset, out: eight.offset, count: 8 });
      expect([await twice.read(), await four.read(), await eight.read()]).toEqual([2, 4, 8].map(values));
    }));

  test('an operation of the device reads its input as it was when it was recorded', () =>
    withSides(['gpu', 'cpu', 'gpu'], async ({ pack, put, output }) => {
      const [x, before, after] = [put(values(1)), output(8), output(8)];
      pack.add({ x, y: x, out: before.offset, count: 8 });
      pack.scale({ x, count: 8, factor: 3 });
      pack.add({ x, y: x, out: after.offset, count: 8 });
      expect([await before.read(), await after.read()]).toEqual([2, 6].map(values));
    }));

  test('a failure drops the operations that wait, and the next ones run', () =>
    withSides(['gpu', 'cpu', 'cpu'], async ({ pack, put, putInts, output }) => {
      const [x, out] = [put(values(1)), output(8)];
      pack.add({ x, y: x, out: out.offset, count: 8 });
      pack.scale({ x: out.offset, count: 8, factor: 2 });
      const rows = putInts([0, 1]);
      pack.lowRankDelta({ x, numTokens: 2, numCols: 4, a: x, b: x, rank: 65, scale: 1, rows, out: x, numRows: 4, scratch: x }); // prettier-ignore
      await expect(pack.sync()).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining('65') });
      pack.scale({ x, count: 8, factor: 5 });
      await pack.sync();
      expect(pack.arena.f32(x, 8)).toEqual(values(5));
    }));

  test('reads only the results that are named', () =>
    withSides(['gpu', 'gpu'], async ({ pack, put, output }) => {
      const [x, named, other] = [put(values(1)), output(8), output(8)];
      pack.add({ x, y: x, out: named.offset, count: 8 });
      pack.add({ x, y: x, out: other.offset, count: 8 });
      await pack.sync([{ offset: named.offset, sizeBytes: 32 }]);
      expect(pack.arena.f32(named.offset, 8)).toEqual(values(2));
      expect(pack.arena.f32(other.offset, 8)).toEqual(values(NaN));
    }));

  /** One row of x, which a table names, into the same row of out. */
  function rowByTable({ pack, put, putInts }: PackFixture): {
    rows: number;
    next: number;
    out: number;
    record(): void;
  } {
    const [x, b, out, scratch] = [put([1, 2]), put([1]), put([0, 0]), put([0, 0])];
    const [rows, next] = [putInts([0]), putInts([1])];
    const sizes = { numTokens: 1, numCols: 1, rank: 1, scale: 1, numRows: 1 };
    return { rows, next, out, record: () => pack.lowRankDelta({ x, a: b, b, rows, out, scratch, ...sizes }) };
  }

  test('a step is recorded anew when its table names other rows', () =>
    withSides(['gpu', 'gpu'], async (fixture) => {
      const { pack } = fixture;
      const { rows, out, record } = rowByTable(fixture);
      for (const row of [0, 1, 1]) {
        pack.arena.i32(rows, 1)[0] = row;
        pack.arena.f32(out, 2)[row] = 0;
        pack.replay!('step', record);
        await pack.sync();
      }
      expect(pack.arena.f32(out, 2)).toEqual(new Float32Array([1, 2]));
    }));

  test('a step that writes its own table is recorded each time', () =>
    withSides(['cpu', 'gpu', 'cpu', 'gpu'], async (fixture) => {
      const { pack } = fixture;
      const { rows, next, out, record } = rowByTable(fixture);
      for (const row of [0, 1]) {
        pack.arena.i32(next, 1)[0] = row;
        pack.replay!('step', () => {
          pack.copyBytes!(next, rows, 4);
          record();
        });
        await pack.sync();
      }
      expect(pack.arena.f32(out, 2)).toEqual(new Float32Array([1, 2]));
    }));

  test('a step is recorded anew behind operations that wait and may write its table', () =>
    withSides(['gpu', 'gpu', 'cpu', 'gpu'], async (fixture) => {
      const { pack, putInts } = fixture;
      const { rows, next, out, record } = rowByTable(fixture);
      const between = putInts([0]);
      pack.replay!('step', record);
      await pack.sync();
      pack.copyBytes!(next, between, 4);
      pack.copyBytes!(between, rows, 4);
      pack.replay!('step', record);
      await pack.sync();
      expect(pack.arena.f32(out, 2)).toEqual(new Float32Array([1, 2]));
    }));

  test('memory of one side: operations run there, and the host sees that of the processor only', () =>
    withSides([], async ({ pack, put }) => {
      const x = put(values(1));
      const [onGpu, onCpu] = [pack.allocateOn!('gpu', 64, 'pages'), pack.allocateOn!('cpu', 64, 'states')];
      expect(() => pack.arena.f32(onGpu, 8)).toThrowError('is not in the memory of the cpu side');
      pack.add({ x, y: x, out: onCpu, count: 8 });
      pack.add({ x, y: x, out: onGpu, count: 8 });
      const result = put(values(0));
      pack.copyBytes!(onCpu, result, 32);
      await pack.sync();
      expect(pack.arena.f32(onCpu, 8)).toEqual(values(2));
      expect(pack.arena.f32(result, 8)).toEqual(values(2));
      expect(() => pack.add({ x: onCpu, y: onGpu, out: x, count: 8 })).toThrowError('on both sides');
    }));
});
