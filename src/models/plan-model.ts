import { RuvLLMError } from '../core/errors.ts';
import { showValue } from '../core/show-value.ts';
import type { GgufFile } from '../gguf/index.ts';
import {
  alignArena,
  type KernelPackFactory,
  type KvPrecision,
  type PackedKvPrecision,
  PAGE_TOKENS,
} from '../kernels/contract.ts';
import { type ActivationPlan, planActivations } from './activations.ts';
import type { Architecture, Decoder } from './architecture.ts';
import { kvHeadsOf, kvPageBytes, MAX_PACKED_REGION_BYTES, numPagesWithin } from './kv-layout.ts';
import { type GpuPages, gpuPageBytes, type LayerSplit, planGpuPages } from './layer-split.ts';
import { findArchitecture } from './registry.ts';
import { readShape } from './shape.ts';
import type { DecoderShape, ModelLimits } from './types.ts';
import { createWeightLoader } from './weight-loader.ts';
import { createBillingSink } from './weight-sinks.ts';
import type { PlacedWeight } from './weight-store.ts';

/** Memory of a model in an arena, computed before loading. */
export interface ModelPlan {
  readonly shape: DecoderShape;
  readonly weightBytes: number;
  readonly kvBytes: number;
  /** Pages of the layers on the GPU of a split model; null: it is not split, or has no such layers. */
  readonly gpuPages: GpuPages | null;
  readonly gpuKvBytes: number;
  /** Of all states of sequences. */
  readonly statesBytes: number;
  readonly activationBytes: number;
  readonly totalBytes: number;
  readonly fileBytes: number;
  /** Longest sequence of this plan. */
  readonly maxContextTokens: number;
  readonly maxCols: number;
  readonly weights: readonly PlacedWeight[];
  readonly kvPrecision: KvPrecision;
  readonly kvPageBytes: number;
  readonly packedPrecision: PackedKvPrecision | null;
  readonly activations: ActivationPlan;
  readonly decoder: Decoder;
}

/**
 * Reads the metadata, checks every weight's shape and adds up the bytes. `maxContextTokens` defaults to the model's
 * training context; sequences cannot exceed all pages together.
 */
export function planModel(
  gguf: GgufFile,
  factory: KernelPackFactory,
  limits: ModelLimits,
  maxContextTokens?: number,
  split: LayerSplit | null = null,
): ModelPlan {
  checkLimits(limits);
  const architecture = findArchitecture(gguf.metadata.string('general.architecture'));
  const shape = readShape(gguf);
  checkCausality(architecture, shape);
  checkExpertsOf(architecture, shape);
  checkLayerSizes(architecture, shape);
  const kvPrecision = limits.kvPrecision ?? 'f16';
  const packedPrecision = limits.packedPrecision ?? null;
  const pageBytes = kvPageBytes(shape, kvPrecision);
  const kvBytes = pageBytes * limits.numPages;
  if (packedPrecision !== null) checkPacked(packedPrecision, shape, kvBytes);
  // As many pages as the region holds if all are packed: an upper bound, because rows are written to float pages.
  const mostPages = packedPrecision === null ? limits.numPages : numPagesWithin(kvBytes, shape, packedPrecision);
  const longest = Math.min(maxContextTokens ?? shape.contextLength, mostPages * PAGE_TOKENS);
  const decoder = architecture.open({ gguf, shape, maxContextTokens: longest });
  const sink = createBillingSink(factory);
  decoder.bind(createWeightLoader(gguf, sink));
  const { arenaBytes: weightBytes, fileBytes, maxCols, weights } = sink.bill();
  const activations = planActivations(shape, limits, longest, decoder);
  const statesBytes = planStates(decoder, limits);
  const gpuPages = split === null ? null : planGpuPages(split, shape, { precision: kvPrecision, packedPrecision });
  const gpuKvBytes = gpuPages === null ? 0 : alignArena(gpuPageBytes(gpuPages, kvBytes));
  return {
    shape,
    weightBytes,
    kvBytes,
    activationBytes: activations.sizeBytes,
    statesBytes,
    gpuPages,
    gpuKvBytes,
    totalBytes: weightBytes + kvBytes + gpuKvBytes + statesBytes + activations.sizeBytes,
    fileBytes,
    maxContextTokens: longest,
    maxCols,
    weights,
    kvPrecision,
    kvPageBytes: pageBytes,
    packedPrecision,
    activations,
    decoder,
  };
}

/** Bytes of one sequence's state in the recurrent layers; 0 without such layers. */
export function stateBytesOf(gguf: GgufFile): number {
  const shape = readShape(gguf);
  const decoder = findArchitecture(shape.architecture).open({ gguf, shape, maxContextTokens: shape.contextLength });
  return alignArena(decoder.stateBytes ?? 0);
}

/** Bytes of all states; each running sequence needs one, and a copy needs one more. */
function planStates({ stateBytes = 0 }: Decoder, { numStates = 0, maxSequences }: ModelLimits): number {
  if (stateBytes === 0) return 0;
  if (!Number.isSafeInteger(numStates) || numStates <= maxSequences || numStates > 2 ** 20) {
    const message = `limits.numStates must be an integer above ${maxSequences}, the number of sequences, got ${numStates}`;
    throw new RuvLLMError('invalid_option', message, { data: { option: 'limits.numStates', numStates, maxSequences } });
  }
  return numStates * alignArena(stateBytes);
}

function checkLimits(limits: ModelLimits): void {
  for (const name of ['maxBatchTokens', 'maxSequences', 'maxLogitRows', 'numPages'] as const) {
    const value = limits[name];
    // Products with any dimension stay safe integers, so sizes cannot wrap.
    if (Number.isSafeInteger(value) && value >= 1 && value <= 2 ** 27) continue;
    throw new RuvLLMError('invalid_option', `limits.${name} must be an integer from 1 to ${2 ** 27}, got ${value}`, {
      data: { option: `limits.${name}` },
    });
  }
}

/** The wrong direction would also give numbers, but wrong ones. */
function checkCausality({ isCausal }: Architecture, shape: DecoderShape): void {
  if (shape.isCausal === isCausal) return;
  const key = `${shape.architecture}.attention.causal`;
  throw new RuvLLMError(
    'unsupported',
    `metadata key "${key}" is ${shape.isCausal}, ${shape.architecture} requires ${isCausal}`,
    { data: { key, value: shape.isCausal } },
  );
}

function checkExpertsOf({ name, experts = 'never' }: Architecture, shape: DecoderShape): void {
  const hasExperts = shape.experts !== undefined;
  if (experts === 'maybe' || hasExperts === (experts === 'always')) return;
  const problem = hasExperts
    ? `${name}: a mixture of ${shape.experts!.numExperts} experts is not supported for this architecture`
    : `${name}: metadata key "${name}.expert_count" is missing or 0`;
  throw new RuvLLMError(hasExperts ? 'unsupported' : 'invalid_model_file', problem, { data: { architecture: name } });
}

function checkLayerSizes({ name, hasLayerSizes = false }: Architecture, { layerSizes }: DecoderShape): void {
  if (hasLayerSizes || layerSizes === undefined) return;
  const sizes = layerSizes.map(
    ({ numKvHeads, headDim, feedForwardDim }) => `${numKvHeads} x ${headDim}, ${feedForwardDim}`,
  );
  const layer = sizes.findIndex((size) => size !== sizes[0]);
  if (layer === -1) return;
  throw new RuvLLMError(
    'unsupported',
    `${name}: key/value heads and feed-forward size differ between layers (layer 0 has ${sizes[0]}, layer ${layer} ${sizes[layer]})`,
    { data: { architecture: name, layer } },
  );
}

function checkPacked(precision: PackedKvPrecision, shape: DecoderShape, kvBytes: number): void {
  if (precision !== 'q8' && precision !== 'q4') {
    throw new RuvLLMError(
      'invalid_option',
      `limits.packedPrecision is ${showValue(precision)}, must be q8, q4 or null`,
      {
        data: { option: 'limits.packedPrecision' },
      },
    );
  }
  const headDim = kvHeadsOf(shape).find((heads) => heads.headDim % 4 !== 0)?.headDim;
  if (headDim !== undefined) {
    throw new RuvLLMError('unsupported', `${precision} pages require heads of a multiple of 4 values, got ${headDim}`, {
      data: { headDim },
    });
  }
  if (kvBytes > MAX_PACKED_REGION_BYTES) {
    throw new RuvLLMError(
      'unsupported',
      `${precision} pages can address ${MAX_PACKED_REGION_BYTES} bytes, the KV region has ${kvBytes}`,
      { data: { kvBytes, limitBytes: MAX_PACKED_REGION_BYTES } },
    );
  }
}
