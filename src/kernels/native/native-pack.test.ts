import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { loadNativeBuilds, NATIVE_BUILDS } from '../../platform/node/kernels/native-addon.ts';
import { kvLayerBytes } from '../contract.ts';
import { expectSameBits, type PackFixture, withPack } from '../pack-fixture.contract.ts';
import { runProgram } from '../pack-programs.contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createNativePackFactory } from './native-pack.ts';

const builds = loadNativeBuilds();
if (builds.length === 0)
  console.log('native kernels are not built here (npm run build:native): their tests are skipped');
test.skipIf(builds.length === 0)('builds are sorted best first; the long form has all of them', () => {
  const order = NATIVE_BUILDS[process.arch]!.map(({ build }) => build);
  if (campaign({ short: false, long: true })) expect(builds.at(-1)!.build).toBe('baseline');
  expect(builds.map(({ build }) => build)).toEqual(order.filter((name) => builds.some(({ build }) => build === name)));
});

/** The short form tests the build that serves here; run the long form after changes to the C sources. */
const tested = campaign({ short: builds.slice(0, 1), long: builds });
for (const native of tested) {
  const factory = createNativePackFactory(native);
  describeKernelPack(`native ${native.build}`, () => factory);
}

// Without pauses, a waiting thread takes over unfinished chunks of the others: computing one twice must change nothing.
test.each(tested)('chunks computed twice count once: $build', async (native) => {
  for (let seed = 1; seed <= campaign({ short: 2, long: 20 }); seed++) {
    const run = { numSteps: 60, seed };
    let alone: Float32Array = new Float32Array();
    await withPack(createNativePackFactory(native), async (fixture) => void (alone = await runProgram(fixture, run)), {
      numThreads: 1,
    });
    for (const numThreads of [2, 3, 5]) {
      const body = async (fixture: PackFixture): Promise<void> =>
        expectSameBits(await runProgram(fixture, run), alone, `${numThreads} threads, seed ${seed}`);
      await withPack(createNativePackFactory(native, { spins: 0 }), body, { numThreads });
    }
  }
});

test.skipIf(builds.length === 0)('memory beyond 2 GiB gives the same bits', async () => {
  const factory = createNativePackFactory(builds[0]!);
  const run = { numSteps: 100, seed: 4 };
  let low: Float32Array = new Float32Array();
  await withPack(factory, async (fixture) => void (low = await runProgram(fixture, run)));
  const far = 2 ** 31 + 2 ** 30; // Node 20 limits a buffer to 4 GiB
  const body = async (fixture: PackFixture): Promise<void> => {
    fixture.pack.arena.allocate(far, 'never touched'); // memory is committed on first use, so this is free
    expectSameBits(await runProgram(fixture, run), low, 'far away');
  };
  await withPack(factory, body, { arenaBytes: far + 2 ** 25 });
});

// A missing barrier is a race, which results show only sometimes.
test.skipIf(builds.length === 0)('every program ends with a barrier, even within a chain', async () => {
  const { addon, build } = builds[0]!;
  const ends: { numOps: number; follow: number }[] = [];
  const run: typeof addon.run = (pool, program, numOps) => {
    ends.push({ numOps, follow: program[(numOps - 1) * 32 + 1]! });
    addon.run(pool, program, numOps);
  };
  // Its functions are not enumerable: a spread would lose them.
  const watched = Object.create(addon, { run: { value: run } }) as typeof addon;
  await withPack(createNativePackFactory({ addon: watched, build }), async ({ pack, put, putInts }) => {
    const [q, k, v, cosSin] = [64, 64, 64, 16].map((length) => put(new Float32Array(length)));
    const layerBytes = kvLayerBytes(1, 16, 'f16');
    const base = pack.arena.allocate(layerBytes, 'page');
    const region = { numPages: 1, numKvHeads: 1, headDim: 16, precision: 'f16' } as const;
    const kv = { base, pageBytes: layerBytes, layerBytes, ...region };
    const turn = { cosSin: cosSin!, numTokens: 1, numHeads: 1, headDim: 16, rotaryDim: 16, pairing: 'halves' } as const;
    const slots = putInts([0]);
    for (let i = 0; i < 1640; i++) {
      pack.rotateAndStore({ ...turn, kv, layer: 0, q: q!, k: k!, v: v!, slots, qNorm: v!, kNorm: v!, epsilon: 1 });
    }
    await pack.sync();
  });
  expect(ends.map(({ numOps }) => numOps)).toEqual([2048, 2048, 2048, 2048, 8]); // 1640 times five
  expect(ends.every(({ follow }) => follow === 1)).toBe(true);
});
