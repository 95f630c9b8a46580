import { expect, test } from 'vitest';
import { loadNativeBuilds, NATIVE_BUILDS } from '../../platform/node/native-addon.ts';
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
