import { describe } from 'vitest';
import { createNodeWasmPlatform } from '../../platform/node/kernels/wasm-platform.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

const { build: chosen } = await createNodeWasmPlatform().loadModule();
const signedDot = createWasmPackFactory(createNodeWasmPlatform(['signed-dot']));
const relaxed = createWasmPackFactory(createNodeWasmPlatform(['relaxed-simd']));
const plain = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

describe.runIf(chosen === 'signed-dot')('on Arm', () => describeKernelPack('wasm signed-dot', () => signedDot));
describeKernelPack('wasm relaxed-simd', () => relaxed);
describeKernelPack('wasm simd128', () => plain);
