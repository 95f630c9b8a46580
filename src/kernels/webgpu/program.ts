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

/** Dispatches with their parameters, in order. */
export interface Sequence {
  readonly numDispatches: number;
  /** Encodes the dispatches from `first` to before `end`. */
  encode(encoder: GpuCommandEncoder, buffers: ProgramBuffers, first: number, end: number): void;
  dispose(): void;
}

/** Dispatches that wait for the next run. */
export interface Program {
  readonly numDispatches: number;
  /** `chunk`: the weights that the kernel reads. */
  add(kernel: KernelSource, params: KernelParams, groups: readonly [number, number?, number?], chunk?: number): void;
  /** Encodes all dispatches in one pass and forgets them. */
  encode(encoder: GpuCommandEncoder, buffers: ProgramBuffers): void;
  /** Takes the dispatches away, to be encoded any number of times. */
  take(): Sequence;
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

export function createProgram(device: GpuDevice, hasSubgroups: boolean): Program {
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
  let bindings: ReturnType<typeof createBindings> | null = null;
  let words = new Uint32Array(256 * SLOT_WORDS);
  let floats = new Float32Array(words.buffer);
  /** Bound where a kernel reads no weights. */
  const noWeights = device.createBuffer({ size: 256, usage: BUFFER_USAGE.storage, label: 'no weights' });

  function open(source: KernelSource): Kernel {
    let kernel = kernels.get(source.name);
    if (kernel === undefined) {
      const module = device.createShaderModule({ code: moduleOf(source, hasSubgroups), label: source.name });
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

  /** A buffer for parameters, and the bind groups with it; they change only if the arena grows. */
  function createBindings(sizeBytes: number) {
    const usage = BUFFER_USAGE.uniform | BUFFER_USAGE.copyDst;
    const uniforms = device.createBuffer({ size: sizeBytes, usage, label: 'parameters' });
    let bound: { readonly buffers: ProgramBuffers; readonly groups: readonly GpuBindGroup[] } | null = null;
    return {
      uniforms,
      groupsFor(buffers: ProgramBuffers): readonly GpuBindGroup[] {
        const isBound =
          bound !== null &&
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
              { binding: 3, resource: { buffer: uniforms, size: SLOT_BYTES } },
            ],
          }),
        );
        bound = { buffers, groups };
        return groups;
      },
    };
  }

  function encodePass(
    encoder: GpuCommandEncoder,
    list: readonly Dispatch[],
    groups: readonly GpuBindGroup[],
    first: number,
    end: number,
  ): void {
    const pass = encoder.beginComputePass();
    let last: GpuComputePipeline | null = null;
    for (let i = first; i < end; i++) {
      const { pipeline, chunk, groups: count } = list[i]!;
      if (pipeline !== last) pass.setPipeline(pipeline);
      last = pipeline;
      pass.setBindGroup(0, groups[chunk]!, [i * SLOT_BYTES]);
      pass.dispatchWorkgroups(count[0], count[1] ?? 1, count[2] ?? 1);
    }
    pass.end();
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
      if (bindings === null || bindings.uniforms.size < usedBytes) {
        bindings?.uniforms.destroy();
        bindings = createBindings(words.byteLength);
      }
      device.queue.writeBuffer(bindings.uniforms, 0, words, 0, usedBytes / 4);
      encodePass(encoder, dispatches, bindings.groupsFor(buffers), 0, dispatches.length);
      dispatches.length = 0;
    },
    take() {
      const list = dispatches.splice(0);
      const own = createBindings(Math.max(1, list.length) * SLOT_BYTES);
      device.queue.writeBuffer(own.uniforms, 0, words, 0, list.length * SLOT_WORDS);
      return {
        numDispatches: list.length,
        encode: (encoder, buffers, first, end) => encodePass(encoder, list, own.groupsFor(buffers), first, end),
        dispose: () => own.uniforms.destroy(),
      };
    },
    dispose() {
      bindings?.uniforms.destroy();
      noWeights.destroy();
    },
  };
}
