import { RuvLLMError } from '../core/errors.ts';
import type { GgufFile } from '../gguf/index.ts';
import { alignArena, type KernelPackFactory } from '../kernels/contract.ts';
import { createSplitPackFactory } from '../kernels/split/split-pack.ts';
import { findMissingOperations } from './find-host-matrices.ts';
import { gpuPageBytes, type LayerSplit, planGpuPages, sideOfWeight } from './layer-split.ts';
import { type ModelPlan, planModel } from './plan-model.ts';
import type { LayerSplitReport, ModelLimits } from './types.ts';

/** The layers for the GPU: their number, or as many as fit. */
export type GpuLayers = number | 'auto';

export interface SplitWish {
  /** Kernels with `device`. */
  readonly gpu: KernelPackFactory;
  readonly cpu: KernelPackFactory;
  readonly gpuLayers: GpuLayers;
  /** Maximum bytes on the GPU; null: unknown. */
  readonly gpuMemoryBytes: number | null;
}

/** The kernels of a model; split null: all of it on one side. */
export interface ChosenSplit {
  readonly factory: KernelPackFactory;
  readonly split: LayerSplit | null;
  readonly report: LayerSplitReport;
}

/** Decides which layers are on the GPU; the last ones, so that results need not return to the processor before the logits. */
export function chooseSplit(
  gguf: GgufFile,
  wish: SplitWish,
  limits: ModelLimits,
  maxContextTokens?: number,
): Candidate {
  const { gpu, gpuLayers, gpuMemoryBytes } = wish;
  const plan = planModel(gguf, gpu, limits, maxContextTokens);
  const { numLayers } = plan.shape;
  const missing = findMissingOperations(gguf, gpu, plan, gpu.device?.missing ?? []);
  const maxDataBytes = gpu.device?.maxDataBytes ?? Infinity;
  const candidateOf = (numGpuLayers: number): Candidate => {
    const split: LayerSplit = { firstGpuLayer: numLayers - numGpuLayers, hostMatrices: missing.matrices };
    const isWhole = numGpuLayers === numLayers && missing.names.size === 0;
    return sizeCandidate(wish, plan, { split, isWhole });
  };
  const limitBytes = gpuMemoryBytes ?? gpu.device?.memoryBytes ?? Infinity;
  if (gpuLayers === 'auto') {
    for (let count = numLayers; count > 0; count--) {
      const candidate = candidateOf(count);
      if (candidate.gpuBytes <= limitBytes && candidate.gpuDataBytes <= maxDataBytes) return candidate;
    }
    return candidateOf(0);
  }
  if (!Number.isInteger(gpuLayers) || gpuLayers < 0 || gpuLayers > numLayers) {
    throw new RuvLLMError(
      'invalid_option',
      `option "gpuLayers" is ${gpuLayers}; the model has ${numLayers} layers. Use 0 to ${numLayers}, or auto`,
      { data: { option: 'gpuLayers', gpuLayers, numLayers } },
    );
  }
  const candidate = candidateOf(gpuLayers);
  if (gpuMemoryBytes !== null && candidate.gpuBytes > gpuMemoryBytes) {
    throw new RuvLLMError(
      'out_of_memory',
      `${gpuLayers} of ${numLayers} layers need ${candidate.gpuBytes} bytes on the GPU, the limit is ${gpuMemoryBytes}. ` +
        'Use fewer layers, or auto',
      { data: { gpuLayers, neededBytes: candidate.gpuBytes, limitBytes: gpuMemoryBytes } },
    );
  }
  return candidate;
}

export interface Candidate extends ChosenSplit {
  readonly gpuBytes: number;
  /** Everything but matrices, which one buffer must hold. */
  readonly gpuDataBytes: number;
}

function sizeCandidate(
  { gpu, cpu }: SplitWish,
  plan: ModelPlan,
  { split, isWhole }: { split: LayerSplit; isWhole: boolean },
): Candidate {
  const { shape, weights, kvPrecision: precision, packedPrecision, kvBytes, statesBytes, activationBytes } = plan;
  const { numLayers } = shape;
  const numGpuLayers = numLayers - split.firstGpuLayer;
  const bytes = { gpu: 0, cpu: 0, vectors: 0 };
  for (const { name, type, numRows, numCols, sizeBytes } of weights) {
    if (type === null) {
      bytes.vectors += alignArena(sizeBytes);
      continue;
    }
    const side = isWhole ? 'gpu' : sideOfWeight(split, name, numLayers);
    bytes[side] += alignArena(side === 'gpu' ? sizeBytes : cpu.matrixBytes(type, numRows, numCols));
  }
  const pages = planGpuPages(split, shape, { precision, packedPrecision });
  const gpuKvBytes = isWhole ? kvBytes : pages === null ? 0 : alignArena(gpuPageBytes(pages, kvBytes));
  const kv = { gpu: gpuKvBytes, cpu: Math.max(0, kvBytes - gpuKvBytes) + statesBytes };
  const sharedBytes = bytes.vectors + activationBytes;
  const hasGpu = bytes.gpu > 0;
  const report: LayerSplitReport = {
    numLayers,
    numGpuLayers: hasGpu ? numGpuLayers : 0,
    gpu: { weightBytes: bytes.gpu + (isWhole ? bytes.vectors : 0), kvBytes: kv.gpu },
    cpu: { weightBytes: bytes.cpu + (isWhole ? 0 : bytes.vectors), kvBytes: isWhole ? 0 : kv.cpu },
  };
  const gpuDataBytes = sharedBytes + kv.gpu;
  const sizes = { gpuBytes: hasGpu ? bytes.gpu + gpuDataBytes : 0, gpuDataBytes: hasGpu ? gpuDataBytes : 0, report };
  if (isWhole) return { ...sizes, factory: gpu, split: null };
  if (!hasGpu) return { ...sizes, factory: cpu, split: null };
  const factory = createSplitPackFactory({
    gpu,
    cpu,
    sideOfMatrix: (name) => sideOfWeight(split, name, numLayers),
    sideBytes: { gpu: bytes.gpu + gpuDataBytes, cpu: bytes.cpu + sharedBytes + kvBytes + statesBytes },
  });
  return { ...sizes, factory, split };
}
