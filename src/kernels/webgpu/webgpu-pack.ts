import { RuvLLMError } from '../../core/errors.ts';
import type { AddOp, ArenaRange, KernelPack, KernelPackFactory, KernelPackOptions } from '../contract.ts';
import { TOP_STATS } from '../contract.ts';
import { checkLowRank, checkTopLogits } from '../op-limits.ts';
import { isSameRanges } from '../ranges.ts';
import { createAttentionOps, MIN_WORKGROUPS } from './attend.ts';
import { createDeviceMemory } from './device-memory.ts';
import type { OpenGpu } from './open-gpu.ts';
import type { GpuCommandBuffer, GpuCommandEncoder } from './gpu.ts';
import { createHostArena } from './host-arena.ts';
import { createProducts, MOST_VECTOR_TOKENS } from './products.ts';
import { createProgram, type ProgramBuffers, type Sequence } from './program.ts';
import type { Recorder } from './recorder.ts';
import { createReplays } from './replay.ts';
import { matrixBytes } from './weight-layouts.ts';
import { createWeightStore } from './weight-store.ts';
import { WORKGROUP } from './wgsl/common.ts';
import {
  COPY_BLOCKS,
  COPY_ROWS,
  LAYER_NORM,
  LOW_RANK_DOWN,
  LOW_RANK_UP,
  MAP,
  MAP_KINDS,
  RMS_NORM,
} from './wgsl/elementwise.ts';
import { SLICE_LOGITS, sliceVectors, TOP_OF_ROWS, TOP_OF_SLICES } from './wgsl/top-logits.ts';

/** Workgroups along one dimension that every device supports. */
const MAX_GROUPS = 65535;
/** Weights are in many buffers: nothing but the device's memory limits them. */
const MAX_ARENA = 2 ** 46;

/** Dispatches that are submitted before the step is recorded. */
const EARLY_DISPATCHES = 32;
/** Dispatches of a step's first part: they must take longer than the submission of the rest. */
const FIRST_DISPATCHES = 24;

/** The sizes of packed weights, without a device. */
export const WEBGPU_SIZES = { name: 'webgpu', maxArenaBytes: MAX_ARENA, matrixBytes } as const;

/** Kernels in WGSL on a GPU. `open` creates a device for each pack, because a lost device ends only its own pack. */
export function createWebGpuPackFactory(
  open: () => Promise<OpenGpu>,
  maxDataBytes = Infinity,
  tuning: WebGpuTuning = { minWorkgroups: MIN_WORKGROUPS, mostVectorTokens: MOST_VECTOR_TOKENS },
): KernelPackFactory {
  // WebGPU does not tell how much memory a device has.
  const device = { missing: MISSING_OPERATIONS, maxDataBytes, memoryBytes: null };
  return { ...WEBGPU_SIZES, device, create: async (options) => createWebGpuPack(await open(), options, tuning) };
}

/** Limits that change how work is divided, but no result. */
export interface WebGpuTuning {
  /** Rows and heads share a workgroup only if this many workgroups are left. */
  readonly minWorkgroups: number;
  /** Products of more tokens take tiles; at least 1. */
  readonly mostVectorTokens: number;
}

/** Operations that this pack does not run; models that need them run them on the processor. */
export const MISSING_OPERATIONS = [
  'experts',
  'causalConv',
  'selectiveScan',
  'deltaScan',
  'mixStreams',
  'matchLengths',
  'sparsify',
  'distances',
  'searchGraph',
  'pickLinks',
] as const;

function unsupportedOps(): Pick<KernelPack, (typeof MISSING_OPERATIONS)[number]> {
  const refuse = (name: string) => (): never => {
    throw new RuvLLMError(
      'unsupported',
      `the webgpu kernels have no operation ${name}: use --kernels native or --kernels wasm for this model`,
      { data: { operation: name } },
    );
  };
  return Object.fromEntries(MISSING_OPERATIONS.map((name) => [name, refuse(name)])) as unknown as ReturnType<
    typeof unsupportedOps
  >;
}

function createWebGpuPack(
  gpu: OpenGpu,
  options: KernelPackOptions,
  { minWorkgroups, mostVectorTokens }: WebGpuTuning,
): KernelPack {
  const { device, name, hasSubgroups } = gpu;
  const arena = createHostArena(options.arenaBytes);
  const memory = createDeviceMemory(device, arena);
  const store = createWeightStore(device, arena, options.arenaBytes);
  const program = createProgram(device, hasSubgroups);
  const replays = createReplays(program, memory);
  let failure: RuvLLMError | null = null;
  const fail = (message: string, code: 'device_lost' | 'kernel_failed' = 'device_lost'): void =>
    void (failure ??= new RuvLLMError(code, message));
  void device.lost.then(({ reason, message }) => {
    if (reason !== 'destroyed') fail(`the GPU device was lost (${reason}): ${message}`);
  });
  device.addEventListener('uncapturederror', ({ error }) => fail(`the GPU reported: ${error.message}`));

  let reservedScratch = 0;
  let borrowedScratch = 0;
  const recorder: Recorder = {
    add(kernel, params, groups, chunk) {
      program.add(kernel, params, groups, chunk);
      if (program.numDispatches >= EARLY_DISPATCHES && !replays.isRecording) submitEarly();
    },
    wrote: (offset, sizeBytes) => memory.markWritten({ offset, sizeBytes }),
    groupsFor: (count) => Math.min(MAX_GROUPS, Math.ceil(count / WORKGROUP)),
    map(kind, x, y, out, count, factor = 0) {
      const params = { kind, x: x / 4, y: y / 4, out: out / 4, count, factorF: factor };
      recorder.add(MAP, params, [recorder.groupsFor(count)]);
      recorder.wrote(out, count * 4);
    },
    reserveScratch(vectors) {
      replays.clear(); // borrowed scratch moves
      reservedScratch += vectors;
      return reservedScratch - vectors;
    },
    borrowScratch(vectors) {
      borrowedScratch = Math.max(borrowedScratch, vectors);
      return reservedScratch;
    },
  };
  const { add, map, wrote, groupsFor } = recorder;
  const { maxTokens, maxCols } = options;
  const products = createProducts(recorder, { maxTokens, maxCols, hasSubgroups, mostVectorTokens });
  const pairwise =
    (kind: number) =>
    ({ x, y, out, count }: AddOp): void =>
      map(kind, x, y, out, count);

  const buffersNow = (): ProgramBuffers => ({
    data: memory.ensureData(),
    scratch: memory.ensureScratch(reservedScratch + borrowedScratch),
    chunks: store.chunks,
  });

  /** Encodes a sequence from its dispatch `first` on, and the operations recorded after it. */
  function encode(sequence: Sequence | null, first = 0): GpuCommandEncoder {
    const buffers = buffersNow();
    const encoder = device.createCommandEncoder();
    sequence?.encode(encoder, buffers, first, sequence.numDispatches);
    if (program.numDispatches > 0) program.encode(encoder, buffers);
    return encoder;
  }

  /** A long step is computed while the rest of it is recorded. */
  function submitEarly(): void {
    if (failure !== null) return; // the next sync throws it
    memory.ensureData();
    memory.upload();
    device.queue.submit([encode(replays.takePending()).finish()]);
  }

  /** Encodes a step in two parts: the device begins with the first while the second is submitted. */
  function encodeStep(sequence: Sequence | null, reads: readonly ArenaRange[] | undefined): EncodedStep {
    const numFirst = Math.min(FIRST_DISPATCHES, sequence?.numDispatches ?? 0);
    const parts: GpuCommandBuffer[] = [];
    if (numFirst > 0) {
      const encoder = device.createCommandEncoder();
      sequence!.encode(encoder, buffersNow(), 0, numFirst);
      parts.push(encoder.finish());
    }
    const encoder = encode(sequence, numFirst);
    const ranges = memory.encodeReads(encoder, reads);
    return { ranges, parts: [...parts, encoder.finish()] };
  }

  /** The step of the last sequence again, encoded while the device computed it. */
  let ahead: {
    readonly sequence: Sequence;
    readonly generation: number;
    readonly reads: readonly ArenaRange[];
    readonly step: EncodedStep;
  } | null = null;

  function takeStep(sequence: Sequence | null, reads: readonly ArenaRange[] | undefined): EncodedStep {
    const isAhead =
      ahead !== null &&
      ahead.sequence === sequence &&
      ahead.generation === memory.generation &&
      program.numDispatches === 0 &&
      reads !== undefined &&
      isSameRanges(ahead.reads, reads);
    const step = isAhead ? ahead!.step : encodeStep(sequence, reads);
    ahead = null;
    return step;
  }

  /** The sequence of the last sync. */
  let last: Sequence | null = null;

  async function sync(reads?: readonly ArenaRange[]): Promise<void> {
    if (failure !== null) throw failure;
    const sequence = replays.takePending();
    memory.ensureData();
    memory.upload();
    const { ranges, parts } = takeStep(sequence, reads);
    for (const commands of parts) device.queue.submit([commands]);
    const done = memory.finishReads(ranges);
    // The next step is probably like this one, if the one before was.
    const isRepeated = sequence !== null && sequence === last;
    last = sequence;
    if (isRepeated && reads !== undefined) {
      const step = encodeStep(sequence, reads);
      ahead = { sequence, reads, step, generation: memory.generation };
    }
    try {
      await done;
    } catch (cause) {
      fail(`the GPU stopped: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
    if (failure !== null) throw failure;
  }

  return {
    name,
    numThreads: 1,
    arena,
    missing: MISSING_OPERATIONS,
    loadMatrix(source) {
      const matrix = store.load(source);
      products.reserve(matrix);
      return matrix;
    },
    gatherRows: products.gatherRows,
    matmul: products.matmul,
    gatedMatmul: products.gatedMatmul,
    rmsNorm({ x, weight, out, numRows, dim, epsilon }) {
      const params = { x: x / 4, weight: weight / 4, out: out / 4, numRows, dim, epsilonF: epsilon };
      add(RMS_NORM, params, [Math.min(MAX_GROUPS, numRows)]);
      wrote(out, numRows * dim * 4);
    },
    layerNorm({ x, weight, bias, out, numRows, dim, epsilon }) {
      const at = { x: x / 4, weight: weight / 4, bias: bias / 4, out: out / 4 };
      add(LAYER_NORM, { ...at, numRows, dim, epsilonF: epsilon }, [Math.min(MAX_GROUPS, numRows)]);
      wrote(out, numRows * dim * 4);
    },
    ...createAttentionOps(recorder, arena, gpu, minWorkgroups),
    gatedActivation: ({ gate, up, out, count, activation }) => map(MAP_KINDS[activation], gate, up, out, count),
    gelu: ({ x, count, formula }) => map(formula === 'tanh' ? MAP_KINDS.tanhGelu : MAP_KINDS.erfGelu, x, x, x, count),
    add: pairwise(MAP_KINDS.add),
    multiply: pairwise(MAP_KINDS.multiply),
    sigmoidGate: pairwise(MAP_KINDS.sigmoidGate),
    softcap: ({ x, count, cap }) => map(MAP_KINDS.softcap, x, x, x, count, cap),
    scale: ({ x, count, factor }) => map(MAP_KINDS.scale, x, x, x, count, factor),
    copyRows({ x, rows, out, numRows, dim }) {
      add(COPY_ROWS, { x: x / 4, rows: rows / 4, out: out / 4, numRows, dim }, [groupsFor(numRows * dim)]);
      wrote(out, numRows * dim * 4);
    },
    copyBlocks({ x, out, numOuter, numInner, width, from, to }) {
      const strides = { fromOuter: from.outer, fromInner: from.inner, toOuter: to.outer, toInner: to.inner };
      const params = { x: x / 4, out: out / 4, numOuter, numInner, width, ...strides };
      add(COPY_BLOCKS, params, [groupsFor(numOuter * numInner * width)]);
      wrote(out, ((numOuter - 1) * to.outer + (numInner - 1) * to.inner + width) * 4);
    },
    lowRankDelta(op) {
      checkLowRank(op);
      const { numTokens, numCols, numRows, rank } = op;
      const shared = {
        inner: op.scratch / 4,
        rows: (op.rows ?? 0) / 4,
        hasRows: op.rows === null ? 0 : 1,
        numTokens,
        rank,
      };
      const down = { ...shared, x: op.x / 4, a: op.a / 4, numCols };
      add(LOW_RANK_DOWN, down, [Math.min(MAX_GROUPS, numTokens * rank)]);
      const up = { ...shared, b: op.b / 4, out: op.out / 4, numRows, scaleF: op.scale };
      add(LOW_RANK_UP, up, [groupsFor(numTokens * numRows)]);
      wrote(op.scratch, numTokens * rank * 4);
      const rows = op.rows === null ? null : arena.bytesOf({ offset: op.rows, sizeBytes: numTokens * 4 }).slice();
      const lastRow = rows === null ? numTokens - 1 : new Int32Array(rows.buffer).reduce((a, b) => Math.max(a, b), 0);
      wrote(op.out, (lastRow + 1) * numRows * 4);
    },
    topLogits(op) {
      checkTopLogits(op);
      const { numRows, vocabSize, k } = op;
      const at = { logits: op.logits / 4, values: op.values / 4, ids: op.ids / 4, stats: op.stats / 4 };
      const numSlices = Math.ceil(vocabSize / SLICE_LOGITS);
      const slices = recorder.borrowScratch(numRows * numSlices * sliceVectors(k));
      const params = { ...at, numRows, vocabSize, k, slices, numSlices };
      add(TOP_OF_SLICES, params, [numRows, numSlices]);
      add(TOP_OF_ROWS, params, [numRows]);
      wrote(op.values, numRows * k * 4);
      wrote(op.ids, numRows * k * 4);
      wrote(op.stats, numRows * TOP_STATS * 4);
    },
    ...unsupportedOps(),
    replay: replays.replay,
    sync,
    copyBytes(from, to, sizeBytes) {
      // Submitted now: the host may write to the source before the next sync.
      borrowedScratch = Math.max(borrowedScratch, Math.ceil(sizeBytes / 16));
      memory.ensureData();
      memory.upload();
      const encoder = encode(replays.takePending());
      // Through scratch: a copy within one buffer is not allowed.
      const [data, between] = [memory.ensureData(), memory.ensureScratch(Math.ceil(sizeBytes / 16))];
      encoder.copyBufferToBuffer(data, from, between, 0, sizeBytes);
      encoder.copyBufferToBuffer(between, 0, data, to, sizeBytes);
      device.queue.submit([encoder.finish()]);
      wrote(to, sizeBytes);
    },
    async dispose() {
      fail('the kernel pack was disposed', 'kernel_failed');
      program.dispose();
      memory.dispose();
      for (const chunk of store.chunks) chunk.destroy();
      device.destroy();
    },
  };
}

/** Commands in the order of their submission, and the ranges that the last one reads. */
interface EncodedStep {
  readonly parts: readonly GpuCommandBuffer[];
  readonly ranges: readonly ArenaRange[];
}
