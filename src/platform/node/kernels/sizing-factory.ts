import { type KernelChoice, packNameOf } from '../../../kernels/kernel-choice.ts';
import type { KernelPackFactory } from '../../../kernels/contract.ts';
import { createNativePackFactory } from '../../../kernels/native/native-pack.ts';
import { createReferencePackFactory } from '../../../kernels/reference/reference-pack.ts';
import { openGpu } from '../../../kernels/webgpu/open-gpu.ts';
import { createWebGpuPackFactory } from '../../../kernels/webgpu/webgpu-pack.ts';
import { createWasmPackFactory } from '../../../kernels/wasm/wasm-pack.ts';
import { ARENA } from './arena-limit.ts';
import { inspectNativeBuilds } from './native-addon.ts';
import { nodeGpu } from './webgpu-platform.ts';
import { createNodeWasmPlatform } from './wasm-platform.ts';

/** Kernels that size packed weights like those a choice leads to here, without the self-check of native ones. */
export function createSizingFactory(choice: KernelChoice): KernelPackFactory {
  if (choice === 'reference') return createReferencePackFactory();
  if (choice === 'webgpu') return createWebGpuPackFactory(async () => openGpu(await nodeGpu()));
  // Of a pack from outside nothing is known before its code runs.
  const native =
    choice === 'wasm' || packNameOf(choice) !== null
      ? undefined
      : inspectNativeBuilds().find(({ addon }) => addon !== null);
  if (native?.addon == null) return createWasmPackFactory(createNodeWasmPlatform());
  return createNativePackFactory({ build: native.build, addon: native.addon }, ARENA);
}
