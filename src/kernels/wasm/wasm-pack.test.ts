import { describe } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

const { build: chosen } = await createNodeWasmPlatform().loadModule();
const signedDot = createWasmPackFactory(createNodeWasmPlatform(['signed-dot']));
const relaxed = createWasmPackFactory(createNodeWasmPlatform(['relaxed-simd']));
const plain = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

describe.runIf(chosen === 'signed-dot')('on Arm', () => describeKernelPack('wasm signed-dot', () => signedDot));
// The short form tests the build that serves here; run the long form after changes to assembly/.
const isLong = campaign({ short: false, long: true });
describe.runIf(isLong || chosen === 'relaxed-simd')('relaxed', () =>
  describeKernelPack('wasm relaxed-simd', () => relaxed),
);
describe.runIf(isLong || chosen === 'simd128')('plain', () => describeKernelPack('wasm simd128', () => plain));
