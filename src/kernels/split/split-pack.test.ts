import { afterAll, describe } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import type { KernelPackFactory } from '../contract.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { describeExperts } from '../pack-experts.contract.ts';
import { disposeSharedPack } from '../pack-fixture.contract.ts';
import { describePrograms } from '../pack-programs.contract.ts';
import { createWasmPackFactory } from '../wasm/wasm-pack.ts';
import { createFakeDeviceFactory } from './fake-device.contract.ts';
import { type Side, SIDES } from './sides.ts';
import { createSplitPackFactory } from './split-pack.ts';

const SEED = 2611;
/** The operations that the WebGPU pack lacks. */
const MISSING = [
  'experts',
  'causalConv',
  'selectiveScan',
  'deltaScan',
  'mixStreams',
  'matchLengths',
  'sparsify',
  'distances',
  'searchGraph',
  'pickLinks',
];
const wasm = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

const device = createFakeDeviceFactory(wasm, MISSING);

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

const lots = drawSides(wasm, SEED);
const deviceLots = drawSides(device, SEED);
// The matrices of one layer's experts are on one side.
describeKernelPack(`two processor packs, seed ${SEED}`, () => lots, ['experts', 'programs']);
describeKernelPack(`a device and a processor pack, seed ${SEED}`, () => deviceLots, ['experts', 'programs', 'vectors']);
for (const side of SIDES) {
  const factory = drawSides(createFakeDeviceFactory(wasm), SEED, () => side);
  describe(`experts on the ${side} side, seed ${SEED}`, () => {
    afterAll(disposeSharedPack);
    describeExperts(() => factory);
    describePrograms(() => factory);
  });
}
