import { createNodeWasmPlatform } from '../../platform/node/wasm-platform.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createWasmPackFactory } from './wasm-pack.ts';

const relaxed = createWasmPackFactory(createNodeWasmPlatform(['relaxed-simd']));
const plain = createWasmPackFactory(createNodeWasmPlatform(['simd128']));

describeKernelPack('wasm relaxed-simd', () => relaxed);
describeKernelPack('wasm simd128', () => plain);
