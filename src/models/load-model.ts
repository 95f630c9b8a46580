import { assert, RuvLLMError } from '../core/errors.ts';
import { instanceOption, integerOption, optional, resolveOptions } from '../core/options.ts';
import type { GgufFile } from '../gguf/index.ts';
import {
  alignArena,
  type Arena,
  type KernelPack,
  type KernelPackFactory,
  type Offset,
  REPLAY_CONTEXT,
  type StateRegion,
} from '../kernels/contract.ts';
import { allocateActivations } from './activations.ts';
import type { Decoder } from './architecture.ts';
import type { DecoderStep } from './decoder-step.ts';
import { endOfPackedPages, kvPageBytes, placeKvLayers } from './kv-layout.ts';
import type { ChosenSplit } from './choose-split.ts';
import { createKvPageStore } from './kv-page-store.ts';
import { type ModelPlan, planModel } from './plan-model.ts';
import { type AdapterSlots, checkAdapters, indexWeights, writeAdapters } from './step-adapters.ts';
import { checkBatch, type StepBounds, writeInputs } from './step-inputs.ts';
import type { KvMemory, LoadedModel, ModelLimits, StepBatch } from './types.ts';
import { createTopRows } from './top-rows.ts';
import { createWeightLoader } from './weight-loader.ts';
import { createPackSink, createPlacedSink } from './weight-sinks.ts';
import type { WeightStore } from './weight-store.ts';

export interface LoadModelOptions {
  limits: ModelLimits;
  /** Default 1. */
  numThreads?: number;
  /** Longest sequence; default: the context the model was trained for. */
  maxContextTokens?: number | null;
  /** Maximum bytes of the arena; default: the limit of the pack. */
  memoryLimitBytes?: number | null;
  /** Keeps packed weights between loads, if the pack supports it. */
  weightStore?: WeightStore | null;
  /** Layers on the GPU, for kernels of two sides; default: all layers are on one. */
  split?: ChosenSplitParts | null;
  /** Called after each matrix is loaded. */
  onProgress?: ((progress: LoadProgress) => void) | null;
}

type ChosenSplitParts = Pick<ChosenSplit, 'split' | 'report'>;

export interface LoadProgress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
}

/** Loads a model into one arena of exactly the planned size; throws `out_of_memory` before allocating. */
export async function loadModel(
  gguf: GgufFile,
  factory: KernelPackFactory,
  options: LoadModelOptions,
): Promise<LoadedModel> {
  const { limits, numThreads, maxContextTokens, memoryLimitBytes, weightStore, split, onProgress } = resolveOptions<
    Required<LoadModelOptions>
  >('loadModel', options, {
    limits: instanceOption('an object of step limits', (value): value is ModelLimits => typeof value === 'object'),
    numThreads: integerOption(1, 1, 1024),
    maxContextTokens: optional(integerOption(1, 1, 2 ** 27)),
    memoryLimitBytes: optional(integerOption(0, 0, Number.MAX_SAFE_INTEGER)),
    weightStore: optional(
      instanceOption('a weight store', (value): value is WeightStore => typeof value === 'object' && value !== null),
    ),
    split: optional(
      instanceOption('a split', (value): value is ChosenSplitParts => typeof value === 'object' && value !== null),
    ),
    onProgress: optional(
      instanceOption('a function', (value): value is (progress: LoadProgress) => void => typeof value === 'function'),
    ),
  });
  const plan = planModel(gguf, factory, limits, maxContextTokens ?? undefined, split?.split ?? null);
  checkMemory(plan, factory, memoryLimitBytes ?? Infinity);
  const { totalBytes: arenaBytes, maxCols } = plan;
  const maxTokens = Math.max(limits.maxBatchTokens, limits.maxLogitRows);
  const pack = await factory.create({ arenaBytes, numThreads, maxTokens, maxCols }).catch((error: unknown) => {
    // JavaScript throws RangeError if the system refuses the memory.
    if (error instanceof RangeError) throw refusedMemory(arenaBytes, error);
    throw error;
  });
  try {
    return fillPack(gguf, pack, plan, limits, {
      store: weightStore,
      split,
      onProgress: onProgress ?? (() => {}),
    });
  } catch (error) {
    await pack.dispose();
    throw error;
  }
}

function fillPack(
  gguf: GgufFile,
  pack: KernelPack,
  plan: ModelPlan,
  limits: ModelLimits,
  {
    store,
    split,
    onProgress,
  }: {
    store: WeightStore | null;
    split: ChosenSplitParts | null;
    onProgress: (progress: LoadProgress) => void;
  },
): LoadedModel {
  const { shape, decoder, maxContextTokens } = plan;
  const { arena } = pack;
  const start = arena.usedBytes;
  const { weights, fileBytes: totalBytes } = plan;
  const images = store === null ? undefined : pack.images;
  const range = images === undefined ? null : { pack, images, offset: start, sizeBytes: plan.weightBytes, weights };
  const isRestored = range !== null && store!.restore(range);
  if (isRestored) onProgress({ loadedBytes: totalBytes, totalBytes });
  let loadedBytes = 0;
  const sink = isRestored
    ? createPlacedSink(pack, range.images)
    : createPackSink(pack, (fileBytes) => {
        loadedBytes += fileBytes;
        onProgress({ loadedBytes, totalBytes });
      });
  const forward = decoder.bind(createWeightLoader(gguf, sink));
  const weightBytes = arena.usedBytes - start;
  if (range !== null && !isRestored) store!.save(range);
  const kv: KvMemory = {
    base: allocateOn(pack, 'cpu', plan.kvBytes, 'KV pages'),
    pageBytes: plan.kvPageBytes,
    numPages: limits.numPages,
  };
  const gpu =
    plan.gpuPages === null
      ? null
      : { ...plan.gpuPages, base: allocateOn(pack, 'gpu', plan.gpuKvBytes, 'KV pages on the GPU') };
  const states = placeStates(pack, decoder, plan, limits);
  const { kvPrecision: precision, packedPrecision } = plan;
  const { groups, layers: kvLayers } = placeKvLayers(shape, kv, { precision, packedPrecision, gpu });
  const packed =
    packedPrecision === null
      ? null
      : {
          precision: packedPrecision,
          pageBytes: kvPageBytes(shape, packedPrecision),
          end: endOfPackedPages(shape, kv, packedPrecision),
        };
  const buffers = allocateActivations(arena, plan.activations);
  const usedBytes = arena.usedBytes - start;
  assert(usedBytes === plan.totalBytes, `planned ${plan.totalBytes} bytes, took ${usedBytes}`);
  // Untouched memory costs nothing: the processor's pages have no bytes for the layers on the GPU.
  const kvBytes = Math.max(plan.kvBytes, plan.gpuKvBytes) + plan.statesBytes;
  const { activationBytes } = plan;
  const bounds: StepBounds = {
    limits,
    vocabSize: shape.vocabSize,
    embeddingDim: shape.embeddingDim,
    isCausal: shape.isCausal,
    maxContextTokens,
    endOfPackedPages: packed?.end ?? 0,
    numStates: states?.numStates ?? 0,
  };
  const dryStep = { pack, shape, kvLayers, states, buffers, ropes: decoder.ropes, vectors: [], adapters: null };
  checkOperations(forward, { ...dryStep, numTokens: 1, numSequences: 1, numLogitRows: 1, numHiddenRows: 1 });
  let numHiddenRows = 0;
  const isOnDevice = pack.copyBytes !== undefined;
  let logitsRange = { offset: buffers.logits, sizeBytes: 0 };
  /** In place of rows that stay on the device. */
  let unread = new Float32Array(0);
  const adapters: AdapterSlots = new Map();
  const top = createTopRows(pack, buffers, shape.vocabSize);

  return {
    shape,
    pack,
    kv,
    pages: createKvPageStore({
      ropes: decoder.ropes,
      pack,
      memory: kv,
      gpu,
      groups,
      packed,
      moves: buffers.packMoves,
    }),
    limits,
    states: states === null ? null : { ...states, bytesOf: (index) => stateBytesAt(arena, states, index) },
    memory: { weightBytes, kvBytes, activationBytes, ...(split === null ? {} : { split: split.report }) },
    async forward(batch) {
      checkBatch(batch, bounds);
      checkAdapters(batch, adapters);
      const step: DecoderStep = {
        pack,
        shape,
        kvLayers,
        states,
        buffers,
        ropes: decoder.ropes,
        numTokens: batch.tokenIds.length,
        numSequences: batch.sequences.length,
        numLogitRows: batch.logitRows.length,
        numHiddenRows: batch.hiddenRows?.length ?? 0,
        vectors: (batch.vectors ?? []).map(({ firstRow, values }) => ({
          firstRow,
          numRows: values.length / shape.embeddingDim,
        })),
        adapters: writeAdapters({ pack, buffers }, batch, adapters),
      };
      writeInputs(step, batch);
      top.request(step.numLogitRows, batch.numTop ?? 0);
      const record = (): void => {
        forward(step);
        top.record();
      };
      const key = pack.replay === undefined ? null : replayKey(step, batch);
      if (key === null) record();
      else pack.replay!(key, record);
      numHiddenRows = step.numHiddenRows;
      logitsRange = { offset: buffers.logits, sizeBytes: step.numLogitRows * shape.vocabSize * 4 };
      const leavesLogits = isOnDevice && batch.leavesLogits === true;
      await pack.sync([
        ...(leavesLogits ? [] : [logitsRange]),
        { offset: buffers.hidden, sizeBytes: step.numHiddenRows * shape.embeddingDim * 4 },
        ...top.reads(),
      ]);
      const numLogits = step.numLogitRows * shape.vocabSize;
      if (!leavesLogits) return arena.f32(buffers.logits, numLogits);
      if (unread.length < numLogits) unread = new Float32Array(numLogits);
      return unread;
    },
    readLogits: isOnDevice
      ? async () => {
          await pack.sync([logitsRange]);
          return arena.f32(logitsRange.offset, logitsRange.sizeBytes / 4);
        }
      : null,
    topOf: top.read,
    hiddenStates: () => arena.f32(buffers.hidden, numHiddenRows * shape.embeddingDim),
    setAdapter(slot, weights) {
      if (weights === null) adapters.delete(slot);
      else adapters.set(slot, indexWeights(weights));
    },
    dispose: () => pack.dispose(),
  };
}

/** Names all that the operations of a decoding step depend on; null: the step is of another kind. */
function replayKey(
  { numTokens, numHiddenRows, vectors, adapters, states }: DecoderStep,
  batch: StepBatch,
): string | null {
  const isPlain = numHiddenRows === 0 && vectors.length === 0 && adapters === null && states === null;
  if (!isPlain || numTokens !== batch.sequences.length) return null;
  const longest = batch.sequences.reduce((most, { contextTokens }) => Math.max(most, contextTokens), 0);
  return [numTokens, batch.logitRows.length, batch.numTop ?? 0, Math.ceil(longest / REPLAY_CONTEXT)].join(' ');
}

/** Calls a step's operations without effect: one that the pack lacks throws now, not in the first request. */
function checkOperations(forward: (step: DecoderStep) => void, step: DecoderStep): void {
  const { pack } = step;
  if (pack.missing === undefined) return;
  const dry = new Proxy(pack, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      return typeof value !== 'function' || pack.missing!.includes(name as string) ? value : () => {};
    },
  });
  forward({ ...step, pack: dry });
}

function allocateOn(pack: KernelPack, side: 'gpu' | 'cpu', sizeBytes: number, what: string): Offset {
  return pack.allocateOn?.(side, sizeBytes, what) ?? pack.arena.allocate(sizeBytes, what);
}

function placeStates(pack: KernelPack, decoder: Decoder, plan: ModelPlan, limits: ModelLimits): StateRegion | null {
  if (plan.statesBytes === 0) return null;
  const base = allocateOn(pack, 'cpu', plan.statesBytes, 'states of sequences');
  return { base, stateBytes: alignArena(decoder.stateBytes!), numStates: limits.numStates! };
}

function stateBytesAt(arena: Arena, { base, stateBytes, numStates }: StateRegion, index: number): Uint8Array {
  assert(Number.isInteger(index) && index >= 0 && index < numStates, `state ${index} of ${numStates}`);
  return arena.u8(base + index * stateBytes, stateBytes);
}

function refusedMemory(neededBytes: number, cause: RangeError): RuvLLMError {
  return new RuvLLMError('out_of_memory', `cannot allocate ${neededBytes} bytes: ${cause.message}`, {
    cause,
    data: { neededBytes },
  });
}

function checkMemory(
  plan: ModelPlan,
  { maxArenaBytes, limitReason }: KernelPackFactory,
  memoryLimitBytes: number,
): void {
  const limitBytes = Math.min(maxArenaBytes, memoryLimitBytes);
  const { weightBytes, activationBytes } = plan;
  const kvBytes = Math.max(plan.kvBytes, plan.gpuKvBytes) + plan.statesBytes;
  const totalBytes = weightBytes + kvBytes + activationBytes;
  if (totalBytes <= limitBytes) return;
  const reason = limitReason !== undefined && limitBytes === maxArenaBytes ? `: ${limitReason}` : '';
  throw new RuvLLMError(
    'out_of_memory',
    `the model needs ${totalBytes} bytes (weights ${weightBytes}, KV pages ${kvBytes}, activations ` +
      `${activationBytes}), the limit is ${limitBytes}${reason}`,
    { data: { neededBytes: totalBytes, limitBytes, weightBytes, kvBytes, activationBytes } },
  );
}
