/** The part of the WebGPU API that the pack uses, as browsers and the package `webgpu` provide it. */
export interface Gpu {
  requestAdapter(options?: { powerPreference?: 'high-performance' | 'low-power' }): Promise<GpuAdapter | null>;
  readonly wgslLanguageFeatures: ReadonlySet<string>;
}

export interface GpuAdapter {
  readonly features: ReadonlySet<string>;
  readonly limits: Readonly<Record<string, number>>;
  readonly info: GpuAdapterInfo;
  requestDevice(descriptor: {
    requiredFeatures: readonly string[];
    requiredLimits: Readonly<Record<string, number>>;
  }): Promise<GpuDevice>;
}

export interface GpuAdapterInfo {
  readonly vendor: string;
  readonly architecture: string;
  readonly device: string;
  readonly description: string;
  readonly subgroupMinSize?: number;
  readonly subgroupMaxSize?: number;
  readonly isFallbackAdapter?: boolean;
}

export interface GpuBuffer {
  readonly size: number;
  mapAsync(mode: number, offset?: number, size?: number): Promise<void>;
  getMappedRange(offset?: number, size?: number): ArrayBuffer;
  unmap(): void;
  destroy(): void;
}

/** Opaque objects of the API. */
export interface GpuBindGroup {
  readonly label: string;
}
export type GpuBindGroupLayout = GpuBindGroup;
export type GpuPipelineLayout = GpuBindGroup;
export type GpuComputePipeline = GpuBindGroup;
export type GpuShaderModule = GpuBindGroup;
export type GpuCommandBuffer = GpuBindGroup;

export interface GpuQueue {
  writeBuffer(buffer: GpuBuffer, offset: number, data: ArrayBufferView, dataOffset?: number, size?: number): void;
  submit(commands: readonly GpuCommandBuffer[]): void;
  onSubmittedWorkDone(): Promise<void>;
}

export interface GpuComputePass {
  setPipeline(pipeline: GpuComputePipeline): void;
  setBindGroup(index: number, group: GpuBindGroup, dynamicOffsets: readonly number[]): void;
  dispatchWorkgroups(x: number, y?: number, z?: number): void;
  end(): void;
}

export interface GpuCommandEncoder {
  beginComputePass(): GpuComputePass;
  copyBufferToBuffer(from: GpuBuffer, fromAt: number, to: GpuBuffer, toAt: number, sizeBytes: number): void;
  finish(): GpuCommandBuffer;
}

export interface GpuError {
  readonly message: string;
}

export interface GpuDevice {
  readonly limits: Readonly<Record<string, number>>;
  readonly features: ReadonlySet<string>;
  readonly queue: GpuQueue;
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;
  createBuffer(descriptor: { size: number; usage: number; label?: string }): GpuBuffer;
  createShaderModule(descriptor: { code: string; label?: string }): GpuShaderModule;
  createBindGroupLayout(descriptor: { entries: readonly object[] }): GpuBindGroupLayout;
  createPipelineLayout(descriptor: { bindGroupLayouts: readonly GpuBindGroupLayout[] }): GpuPipelineLayout;
  createComputePipeline(descriptor: {
    label?: string;
    layout: GpuPipelineLayout;
    compute: { module: GpuShaderModule; entryPoint: string };
  }): GpuComputePipeline;
  createBindGroup(descriptor: { layout: GpuBindGroupLayout; entries: readonly object[] }): GpuBindGroup;
  createCommandEncoder(): GpuCommandEncoder;
  pushErrorScope(filter: 'out-of-memory' | 'validation' | 'internal'): void;
  popErrorScope(): Promise<GpuError | null>;
  addEventListener(type: 'uncapturederror', listener: (event: { readonly error: GpuError }) => void): void;
  destroy(): void;
}

/** Numbers of the specification: in Node they are not global. */
export const BUFFER_USAGE = { mapRead: 1, copySrc: 4, copyDst: 8, uniform: 64, storage: 128 } as const;
export const MAP_READ = 1;
export const SHADER_STAGE_COMPUTE = 4;
