import { expect, test } from 'vitest';
import { loadNativeBuilds, NATIVE_BUILDS } from '../../platform/node/native-addon.ts';
import { expectSameBits, type PackFixture, withPack } from '../pack-fixture.contract.ts';
import { runProgram } from '../pack-programs.contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createNativePackFactory } from './native-pack.ts';

const builds = loadNativeBuilds();
if (builds.length === 0)
  console.log('native kernels are not built here (npm run build:native): their tests are skipped');
test.skipIf(builds.length === 0)('builds come best first, and the plainest is always there', () => {
  const order = NATIVE_BUILDS[process.arch]!.map(({ build }) => build);
  expect(builds.at(-1)!.build).toBe('baseline');
  expect(builds.map(({ build }) => build)).toEqual(order.filter((name) => builds.some(({ build }) => build === name)));
});

for (const native of builds) {
  const factory = createNativePackFactory(native);
  describeKernelPack(`native ${native.build}`, () => factory);
}

test.skipIf(builds.length === 0)('memory beyond 2 GiB computes the same bits', async () => {
  const factory = createNativePackFactory(builds[0]!);
  const run = { numSteps: 100, seed: 4 };
  let low: Float32Array = new Float32Array();
  await withPack(factory, async (fixture) => void (low = await runProgram(fixture, run)));
  const far = 2 ** 31 + 2 ** 30; // Node 20 gives one buffer 4 GiB at most
  const body = async (fixture: PackFixture): Promise<void> => {
    fixture.pack.arena.allocate(far, 'never touched'); // the system gives pages on first use, so this costs nothing
    expectSameBits(await runProgram(fixture, run), low, 'far away');
  };
  await withPack(factory, body, { arenaBytes: far + 2 ** 25 });
});
