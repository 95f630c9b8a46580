import { RuvLLMError } from '../core/errors.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { type BuiltInKernels, type KernelChoice, packNameOf } from '../kernels/kernel-choice.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { findKernelFault } from '../kernels/self-check.ts';
import { createWasmPackFactory } from '../kernels/wasm/wasm-pack.ts';
import type { Gpu } from '../kernels/webgpu/gpu.ts';
import { largestBuffer, openGpu, requestAdapter } from '../kernels/webgpu/open-gpu.ts';
import { createWebGpuPackFactory } from '../kernels/webgpu/webgpu-pack.ts';
import { createBrowserWasmPlatform } from '../platform/browser/kernels/wasm-platform.ts';

const createWasm = (): KernelPackFactory => createWasmPackFactory(createBrowserWasmPlatform());

/** GPUs and their drivers differ: a device must compute what the reference computes before it is used. */
async function createWebGpu(): Promise<KernelPackFactory> {
  const { gpu } = navigator as { readonly gpu?: Gpu };
  if (gpu === undefined)
    throw new RuvLLMError('unsupported', 'this browser has no WebGPU; kernels "wasm" work without');
  const factory = createWebGpuPackFactory(() => openGpu(gpu), largestBuffer(await requestAdapter(gpu)));
  const fault = await findKernelFault(factory, createReferencePackFactory(), 1);
  if (fault === null) return factory;
  throw new RuvLLMError('kernel_failed', `webgpu kernels refused: computes wrong: ${fault}`);
}

const FACTORIES: Readonly<Record<BuiltInKernels, () => KernelPackFactory | Promise<KernelPackFactory>>> = {
  auto: createWasm,
  wasm: createWasm,
  webgpu: createWebGpu,
  reference: createReferencePackFactory,
  native() {
    throw new RuvLLMError('unsupported', 'native kernels run in Node only; in a browser kernels are "wasm"');
  },
};

/** The kernels a choice leads to in a worker; `auto` is WASM. */
export async function createKernelFactory(choice: KernelChoice): Promise<KernelPackFactory> {
  if (packNameOf(choice) === null) return FACTORIES[choice as BuiltInKernels]();
  throw new RuvLLMError('unsupported', 'kernel packs from outside run in Node only');
}
