import { RuvLLMError } from '../../core/errors.ts';
import {
  BUFFER_USAGE,
  type GpuBindGroup,
  type GpuBuffer,
  type GpuComputePipeline,
  type GpuCommandEncoder,
  type GpuDevice,
  SHADER_STAGE_COMPUTE,
} from './gpu.ts';
import { type KernelSource, moduleOf } from './wgsl/common.ts';

/** Parameters of a dispatch by name, or in the order of the kernel, which takes a fraction of the time; all must be given. */
export type KernelParams = Readonly<Record<string, number>> | readonly number[];

/** The buffers that kernels see. */
export interface ProgramBuffers {
  readonly data: GpuBuffer;
  readonly scratch: GpuBuffer;
  readonly chunks: readonly GpuBuffer[];
}

/** Dispatches that wait for the next run. */
export interface Program {
  readonly numDispatches: number;
  /** `chunk`: the weights that the kernel reads. */
  add(kernel: KernelSource, params: KernelParams, groups: readonly [number, number?, number?], chunk?: number): void;
  /** Encodes all dispatches in one pass and forgets them. */
  encode(encoder: GpuCommandEncoder, buffers: ProgramBuffers): void;
  dispose(): void;
}

/** Uniform offsets are multiples of this on every device. */
const SLOT_BYTES = 256;
const SLOT_WORDS = SLOT_BYTES / 4;

interface Kernel {
  readonly pipeline: GpuComputePipeline;
  /** Whether each parameter is a float. */
  readonly isFloat: readonly boolean[];
}

interface Dispatch {
  readonly pipeline: GpuComputePipeline;
  readonly chunk: number;
  readonly groups: readonly [number, number?, number?];
}

const isList = (params: KernelParams): params is readonly number[] => Array.isArray(params);

export function createProgram(device: GpuDevice): Program {
  const layout = device.createBindGroupLayout({
    entries: [
      { binding: 0, visibility: SHADER_STAGE_COMPUTE, buffer: { type: 'storage' } },
      { binding: 1, visibility: SHADER_STAGE_COMPUTE, buffer: { type: 'read-only-storage' } },
      { binding: 2, visibility: SHADER_STAGE_COMPUTE, buffer: { type: 'storage' } },
      { binding: 3, visibility: SHADER_STAGE_COMPUTE, buffer: { type: 'uniform', hasDynamicOffset: true } },
    ],
  });
  const pipelineLayout = device.createPipelineLayout({ bindGroupLayouts: [layout] });
  const kernels = new Map<string, Kernel>();
  const dispatches: Dispatch[] = [];
  let words = new Uint32Array(256 * SLOT_WORDS);
  let floats = new Float32Array(words.buffer);
  let uniforms: GpuBuffer | null = null;
  let bound: { buffers: ProgramBuffers; uniforms: GpuBuffer; groups: GpuBindGroup[] } | null = null;
  /** Bound where a kernel reads no weights. */
  const noWeights = device.createBuffer({ size: 256, usage: BUFFER_USAGE.storage, label: 'no weights' });

  function open(source: KernelSource): Kernel {
    let kernel = kernels.get(source.name);
    if (kernel === undefined) {
      const module = device.createShaderModule({ code: moduleOf(source), label: source.name });
      const pipeline = device.createComputePipeline({
        label: source.name,
        layout: pipelineLayout,
        compute: { module, entryPoint: 'main' },
      });
      kernel = { pipeline, isFloat: source.params.map((name) => name.endsWith('F')) };
      kernels.set(source.name, kernel);
    }
    return kernel;
  }

  /** Writes the parameters of a dispatch; every token takes hundreds of these. */
  function writeParams(
    { name, params: names }: KernelSource,
    params: KernelParams,
    isFloat: readonly boolean[],
    at: number,
  ): void {
    const list = isList(params) ? params : names.map((each) => params[each]);
    for (let i = 0; i < names.length; i++) {
      const value = list[i];
      if (value === undefined) throw new RuvLLMError('internal', `kernel ${name} lacks parameter ${names[i]}`);
      if (isFloat[i]) floats[at + i] = value;
      else words[at + i] = value;
    }
  }

  function bind(buffers: ProgramBuffers, parameters: GpuBuffer): GpuBindGroup[] {
    const isBound =
      bound !== null &&
      bound.uniforms === parameters &&
      bound.buffers.data === buffers.data &&
      bound.buffers.scratch === buffers.scratch &&
      bound.groups.length === Math.max(1, buffers.chunks.length);
    if (isBound) return bound!.groups;
    const chunks = buffers.chunks.length === 0 ? [noWeights] : buffers.chunks;
    const groups = chunks.map((chunk) =>
      device.createBindGroup({
        layout,
        entries: [
          { binding: 0, resource: { buffer: buffers.data } },
          { binding: 1, resource: { buffer: chunk } },
          { binding: 2, resource: { buffer: buffers.scratch } },
          { binding: 3, resource: { buffer: parameters, size: SLOT_BYTES } },
        ],
      }),
    );
    bound = { buffers, uniforms: parameters, groups };
    return groups;
  }

  return {
    get numDispatches() {
      return dispatches.length;
    },
    add(kernel, params, groups, chunk = 0) {
      if (groups.some((count) => count === 0)) return;
      const index = dispatches.length;
      if ((index + 1) * SLOT_WORDS > words.length) {
        const larger = new Uint32Array(words.length * 2);
        larger.set(words);
        words = larger;
        floats = new Float32Array(words.buffer);
      }
      const { pipeline, isFloat } = open(kernel);
      writeParams(kernel, params, isFloat, index * SLOT_WORDS);
      dispatches.push({ pipeline, chunk, groups });
    },
    encode(encoder, buffers) {
      const usedBytes = dispatches.length * SLOT_BYTES;
      if (uniforms === null || uniforms.size < usedBytes) {
        uniforms?.destroy();
        const usage = BUFFER_USAGE.uniform | BUFFER_USAGE.copyDst;
        uniforms = device.createBuffer({ size: words.byteLength, usage, label: 'parameters' });
      }
      const groups = bind(buffers, uniforms);
      device.queue.writeBuffer(uniforms, 0, words, 0, usedBytes / 4);
      const pass = encoder.beginComputePass();
      let last: GpuComputePipeline | null = null;
      dispatches.forEach(({ pipeline, chunk, groups: count }, i) => {
        if (pipeline !== last) pass.setPipeline(pipeline);
        last = pipeline;
        pass.setBindGroup(0, groups[chunk]!, [i * SLOT_BYTES]);
        pass.dispatchWorkgroups(count[0], count[1] ?? 1, count[2] ?? 1);
      });
      pass.end();
      dispatches.length = 0;
    },
    dispose() {
      uniforms?.destroy();
      noWeights.destroy();
    },
  };
}
