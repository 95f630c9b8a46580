import { RuvLLMError } from '../core/errors.ts';
import type { Architecture, Decoder } from './architecture.ts';
import { activateGate, addAdjusted, type AttentionRule, embedTokens, writeOutputs } from './decoder-blocks.ts';
import { type Norm, normalizedInput, normalizeRows, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { type FeedForwardWeights, readEnds, readFeedForward } from './decoder-weights.ts';
import { computeMixture, mixtureScratch, type MixtureWeights, readMixture } from './gemma4-experts.ts';
import { type KeySource, readKeySources, readSharingAttention, type SharingAttention } from './key-sharing.ts';
import { readEpsilon, readNumber, readSoftcap, readWindow, readWindowedLayers } from './metadata-keys.ts';
import {
  multiplyLayerInput,
  perLayerScratch,
  type PerLayerWeights,
  readPerLayer,
  readPerLayerTables,
  refuseVectors,
  writeLayerInputs,
} from './per-layer-inputs.ts';
import { readCount } from './read-count.ts';
import { plainRope, readRope, type RopeVariant } from './rope.ts';
import type { DecoderShape, LayerSizes, ModelFile } from './types.ts';
import type { Offset } from '../kernels/contract.ts';
import type { WeightLoader } from './weight-loader.ts';

/**
 * Gemma 4 (text): layers with a window have other heads than those without one; the last layers share keys and values; values may be
 * the keys; small models have an embedding of the token for each layer, and one has experts beside its dense layers.
 */
export const gemma4: Architecture = {
  name: 'gemma4',
  isCausal: true,
  experts: 'maybe',
  hasLayerSizes: true,
  open: openGemma4,
};

interface LayerRule extends KeySource {
  readonly attention: AttentionRule & { readonly rope: number };
  readonly shape: DecoderShape & Partial<LayerSizes>;
}

function openGemma4(file: ModelFile): Decoder {
  const { shape } = file;
  const { embeddingDim, numLayers } = shape;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const dim = readLayerInputDim(file);
  const windowed = readWindowedLayers(file);
  const rules = readLayerRules(file, windowed);
  const softcap = readSoftcap(file, 'final_logit_softcapping', 30);
  return {
    ropes: readRopes(file, rules, windowed),
    scratch: {
      ...(dim === 0 ? {} : perLayerScratch(dim, numLayers)),
      ...(shape.experts === undefined ? {} : mixtureScratch(embeddingDim)),
    },
    bind(loader) {
      const ends = readEnds(loader, shape, norms);
      const tables = dim === 0 ? null : readPerLayerTables(loader, shape, { dim, epsilon: norms.epsilon });
      const layers = rules.map((rule, layer) => readLayer(loader, { layer, rule, dim, norms }));
      return (step) => {
        if (tables !== null) refuseVectors(step);
        embedTokens(step, ends.embedding, Math.sqrt(embeddingDim));
        if (tables !== null) writeLayerInputs(step, tables);
        for (const [index, layer] of layers.entries()) {
          addAttention(step, layer);
          addFeedForward(step, layer);
          if (layer.perLayer !== null) addLayerInput(step, index, layer.perLayer);
          if (layer.outputScale !== null) scaleResidual(step, layer.outputScale);
        }
        writeOutputs(step, ends.output, { scale: 1, softcap });
      };
    },
  };
}

interface LayerWeights {
  readonly attentionNorm: Norm;
  readonly mixer: SharingAttention;
  readonly attentionPostNorm: Norm;
  readonly feedForwardNorm: Norm;
  readonly feedForward: FeedForwardWeights;
  readonly mixture: MixtureWeights | null;
  readonly feedForwardPostNorm: Norm;
  readonly perLayer: PerLayerWeights | null;
  /** [1]; null: none. */
  readonly outputScale: Offset | null;
}

interface LayerOptions {
  readonly layer: number;
  readonly rule: LayerRule;
  readonly dim: number;
  readonly norms: NormRule;
}

function readLayer(loader: WeightLoader, { layer, rule, dim, norms }: LayerOptions): LayerWeights {
  const { embeddingDim } = rule.shape;
  const name = (part: string): string => `blk.${layer}.${part}`;
  const norm = (part: string): Norm => readNorm(loader, name(part), embeddingDim, norms);
  const scale = name('layer_output_scale.weight');
  return {
    attentionNorm: norm('attn_norm'),
    mixer: readSharingAttention(loader, layer, rule.shape, { ...rule, epsilon: norms.epsilon }),
    attentionPostNorm: norm('post_attention_norm'),
    feedForwardNorm: norm('ffn_norm'),
    feedForward: readFeedForward(loader, layer, rule.shape),
    mixture: loader.has(name('ffn_gate_inp.weight')) ? readMixture(loader, layer, rule.shape, norms) : null,
    feedForwardPostNorm: norm('post_ffw_norm'),
    perLayer: dim === 0 ? null : readPerLayer(loader, layer, embeddingDim, { dim, norms }),
    outputScale: loader.has(scale) ? loader.vector(scale, 1) : null,
  };
}

function addAttention(step: DecoderStep, { attentionNorm, mixer, attentionPostNorm }: LayerWeights): void {
  mixer.attend(step, normalizedInput(step, attentionNorm));
  addAdjusted(step, step.buffers.attended, mixer.output, attentionPostNorm, 1);
}

function addFeedForward(step: DecoderStep, weights: LayerWeights): void {
  const { feedForwardNorm, feedForward, mixture, feedForwardPostNorm } = weights;
  if (mixture !== null) {
    const { hidden, residual } = step.buffers;
    computeMixture(step, feedForwardNorm, feedForward, mixture);
    normalizeRows(step, feedForwardPostNorm, hidden, hidden, step.numTokens);
    step.pack.add({ x: residual, y: hidden, out: residual, count: step.numTokens * step.shape.embeddingDim });
    return;
  }
  activateGate(step, normalizedInput(step, feedForwardNorm), feedForward, 'gelu');
  addAdjusted(step, step.buffers.gate, feedForward.down, feedForwardPostNorm, 1);
}

function addLayerInput(step: DecoderStep, index: number, weights: PerLayerWeights): void {
  const { pack, buffers, numTokens, shape } = step;
  const { residual, hidden } = buffers;
  multiplyLayerInput(step, index, residual, weights);
  pack.add({ x: residual, y: hidden, out: residual, count: numTokens * shape.embeddingDim });
}

function scaleResidual({ pack, buffers, numTokens, shape }: DecoderStep, scale: Offset): void {
  const factor = pack.arena.f32(scale, 1)[0]!;
  pack.scale({ x: buffers.residual, count: numTokens * shape.embeddingDim, factor });
}

/** 0: layers have no inputs of their own. */
function readLayerInputDim({ gguf, shape }: ModelFile): number {
  const key = `${shape.architecture}.embedding_length_per_layer_input`;
  return gguf.metadata.number(key, 0) === 0 ? 0 : readCount(gguf.metadata, key, 2 ** 16);
}

function readLayerRules(file: ModelFile, windowed: readonly boolean[]): readonly LayerRule[] {
  const { shape } = file;
  const window = readWindow(file);
  const common = { scale: 1, softcap: 0 };
  return readKeySources(shape, windowed).map((source, layer) => ({
    ...source,
    attention: windowed[layer] ? { ...common, rope: 1, window } : { ...common, rope: 0, window: 0 },
    shape: { ...shape, ...shape.layerSizes?.[layer] },
  }));
}

/** Of layers without a window, whose file has factors for the values that are not rotated, and of those with one. */
function readRopes(file: ModelFile, rules: readonly LayerRule[], windowed: readonly boolean[]): readonly RopeVariant[] {
  const { gguf, shape } = file;
  const headDimOf = (isWindowed: boolean): number =>
    rules[windowed.indexOf(isWindowed)]?.shape.headDim ?? shape.headDim;
  const localDim = headDimOf(true);
  const key = `${shape.architecture}.rope.dimension_count_swa`;
  const rotaryDim = readCount(gguf.metadata, key, localDim, localDim);
  if (rotaryDim % 2 !== 0) {
    throw new RuvLLMError('invalid_model_file', `metadata key "${key}" is ${rotaryDim}, must be even`, {
      data: { key, value: rotaryDim },
    });
  }
  const local = plainRope(rotaryDim, readNumber(file, 'rope.freq_base_swa', 10000), 'halves');
  if (!windowed.includes(false)) return [local, local];
  return [readRope({ ...file, shape: { ...shape, headDim: headDimOf(false) } }, 'halves'), local];
}
