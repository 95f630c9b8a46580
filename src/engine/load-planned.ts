import { RuvLLMError } from '../core/errors.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import type { GgufFile } from '../gguf/types.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { chooseSplit, loadModel, planModel } from '../models/index.ts';
import type { LoadedModel } from '../models/types.ts';
import type { WeightStore } from '../models/weight-store.ts';
import type { OpenedModel } from './open-engine.ts';
import { planEngine } from './plan-engine.ts';
import { startPages } from './start-pages.ts';
import type { LoadProgress, ModelSpec } from './protocol.ts';

/** Tensor types that the kernels need; one-dimensional tensors (norms, biases) are read as floats. */
export function matrixTypes(gguf: GgufFile): TensorTypeName[] {
  const matrices = [...gguf.tensors.values()].filter(({ dims }) => dims.length > 1);
  return [...new Set(matrices.map(({ type }) => type))];
}

export type PlannedModel = Pick<OpenedModel, 'model' | 'kvPacking'>;

export interface LoadPlannedOptions {
  readonly factory: KernelPackFactory;
  /** Kernels of the processor for layers that are not on the device of `factory`; default: all layers are. */
  readonly cpuFactory?: KernelPackFactory | null;
  /** Packed weights of earlier loads; null: none. */
  readonly weightStore: WeightStore | null;
  readonly onProgress: LoadProgress;
}

/** Loads a model with the pages and limits that its spec plans. */
export async function loadPlanned(
  spec: ModelSpec,
  gguf: GgufFile,
  { factory, cpuFactory = null, weightStore, onProgress }: LoadPlannedOptions,
): Promise<PlannedModel> {
  const { kvPacking, numPages, leastPages, limitsOf } = planEngine(spec, gguf);
  const sizeOf = (pages: number): number => planModel(gguf, factory, limitsOf(pages), spec.maxContext).totalBytes;
  const firstPages = startPages({ numPages, leastPages }, sizeOf, factory.fastArenaBytes);
  const load = async (pages: number): Promise<LoadedModel> => {
    const limits = limitsOf(pages);
    const { gpuLayers, gpuMemoryBytes, maxContext } = spec;
    const chosen =
      cpuFactory === null
        ? { factory, split: null }
        : chooseSplit(gguf, { gpu: factory, cpu: cpuFactory, gpuLayers, gpuMemoryBytes }, limits, maxContext);
    return loadModel(gguf, chosen.factory, {
      limits,
      split: 'report' in chosen ? chosen : null,
      numThreads: spec.numThreads,
      maxContextTokens: spec.maxContext,
      memoryLimitBytes: spec.memoryLimitBytes,
      weightStore,
      onProgress: ({ loadedBytes, totalBytes }) => onProgress(loadedBytes, totalBytes),
    });
  };
  const model = await load(firstPages).catch((error: unknown) => {
    // Space for cached prefixes is given up first.
    const isTooMuch = error instanceof RuvLLMError && error.code === 'out_of_memory' && leastPages < firstPages;
    if (!isTooMuch) throw error;
    return load(leastPages);
  });
  return { model, kvPacking };
}
