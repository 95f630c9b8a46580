import { test } from 'vitest';
import { loadNativeBuilds } from '../../platform/node/native-addon.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createNativePackFactory } from './native-pack.ts';

const builds = loadNativeBuilds();
if (builds.length === 0)
  console.log('native kernels are not built here (npm run build:native): their tests are skipped');
test.skipIf(builds.length > 0)('native kernels, where they are built', () => {});

for (const native of builds) {
  const factory = createNativePackFactory(native);
  describeKernelPack(`native ${native.build}`, () => factory);
}
