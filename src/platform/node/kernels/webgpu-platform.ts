import { RuvLLMError } from '../../../core/errors.ts';
import type { Gpu } from '../../../kernels/webgpu/gpu.ts';

/** The exports of the package `webgpu` that are used. */
interface WebGpuPackage {
  create(options: string[]): Gpu;
}

/** Half precision on NVIDIA and features that are not standard yet. */
const TOGGLES = 'enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia';

let gpu: Promise<Gpu> | null = null;

async function load(): Promise<Gpu> {
  const name = 'webgpu'; // not a literal: compilers and bundlers must not require the optional package
  try {
    return ((await import(name)) as WebGpuPackage).create([TOGGLES]);
  } catch (cause) {
    throw new RuvLLMError('unsupported', 'GPU kernels require the package webgpu: npm install webgpu@0.6', { cause });
  }
}

/** WebGPU of this process; the object must live as long as its devices. */
export function nodeGpu(): Promise<Gpu> {
  gpu ??= load();
  return gpu;
}
