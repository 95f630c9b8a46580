import { RuvLLMError } from '../../core/errors.ts';
import type { Gpu, GpuAdapter, GpuDevice } from './gpu.ts';

/** A device for one pack. */
export interface OpenGpu {
  readonly device: GpuDevice;
  /** The pack's name: results differ between devices, so it is part of keys. */
  readonly name: string;
  /** Whether every subgroup has exactly the lanes of a row. */
  readonly hasSubgroups: boolean;
  /** Memory of a workgroup. */
  readonly workgroupBytes: number;
}

/** Limits that are raised to the adapter's. */
const BUFFER_LIMITS = ['maxStorageBufferBindingSize', 'maxBufferSize'];
const LIMITS = [...BUFFER_LIMITS, 'maxComputeWorkgroupStorageSize'];
const ROW_LANES = 32;

/** Short words about an adapter, such as "nvidia hopper". */
export function describeAdapter({ info }: GpuAdapter): string {
  const words = [info.vendor, info.architecture].filter((word) => word !== '');
  return words.length === 0 ? 'unknown adapter' : words.join(' ');
}

export async function requestAdapter(gpu: Gpu): Promise<GpuAdapter> {
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) {
    throw new RuvLLMError('unsupported', 'no GPU adapter: install a Vulkan driver, or use --kernels native or wasm');
  }
  if (!gpu.wgslLanguageFeatures.has('packed_4x8_integer_dot_product')) {
    throw new RuvLLMError('unsupported', 'this WebGPU has no packed integer dot products, which the kernels use');
  }
  return adapter;
}

/** Most bytes of one buffer, which holds everything but matrices. */
export const largestBuffer = ({ limits }: Pick<GpuAdapter, 'limits'>): number =>
  Math.min(...BUFFER_LIMITS.map((name) => limits[name]!));

export async function openGpu(gpu: Gpu): Promise<OpenGpu> {
  const adapter = await requestAdapter(gpu);
  const { subgroupMinSize, subgroupMaxSize } = adapter.info;
  const hasSubgroups =
    adapter.features.has('subgroups') && subgroupMinSize === ROW_LANES && subgroupMaxSize === ROW_LANES;
  const device = await adapter.requestDevice({
    requiredFeatures: hasSubgroups ? ['subgroups'] : [],
    requiredLimits: Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]!])),
  });
  const workgroupBytes = adapter.limits.maxComputeWorkgroupStorageSize!;
  return { device, name: `webgpu (${describeAdapter(adapter)})`, hasSubgroups, workgroupBytes };
}
