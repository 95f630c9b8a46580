import { RuvLLMError } from '../core/errors.ts';
import type { Offset } from '../kernels/contract.ts';
import {
  type AltUpShape,
  type AltUpWeights,
  altUpScratch,
  correctStreams,
  mergeStreams,
  predictStreams,
  readAltUp,
  readAltUpEnds,
  spreadStreams,
  streamAt,
} from './altup.ts';
import type { Architecture, Decoder } from './architecture.ts';
import {
  activateGate,
  addAdjusted,
  type AttentionRule,
  embedTokens,
  multiplyInput,
  writeOutputs,
} from './decoder-blocks.ts';
import { type Norm, normalizedInput, normalizeRows, type NormRule, readNorm } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { type FeedForwardWeights, readEnds, readFeedForward } from './decoder-weights.ts';
import { type KeySource, readKeySources, readSharingAttention, type SharingAttention } from './key-sharing.ts';
import { readEpsilon, readNumber, readSoftcap, readWindow, readWindowedLayers } from './metadata-keys.ts';
import {
  multiplyLayerInput,
  perLayerScratch,
  readPerLayer,
  readPerLayerTables,
  refuseVectors,
  writeLayerInputs,
} from './per-layer-inputs.ts';
import { readCount } from './read-count.ts';
import { plainRope, readRope } from './rope.ts';
import type { ModelFile } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/**
 * Gemma 3n (text): alternating updates of four streams, an embedding of the token for each layer, a learned low-rank residual (LAuReL),
 * sparse activations in the first layers, and last layers that share keys and values.
 */
export const gemma3n: Architecture = { name: 'gemma3n', isCausal: true, open: openGemma3n };

/** Of the first layers in files without a list: the normal distribution's 95th percentile. */
const DEFAULT_SPARSITY = { threshold: 1.6448533535003662, numLayers: 10 };
const MAX_STREAMS = 16;

/** Where a layer's keys and values are, and its rotation and window. */
interface LayerRule extends KeySource {
  readonly attention: AttentionRule & { readonly rope: number };
  /** Standard deviations of the gate above which activations are kept; null: all are. */
  readonly sparsity: number | null;
}

function openGemma3n(file: ModelFile): Decoder {
  const { shape } = file;
  const { embeddingDim, numLayers, architecture } = shape;
  const { metadata } = file.gguf;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const numStreams = readCount(metadata, `${architecture}.altup.num_inputs`, MAX_STREAMS, 4);
  const altUp: AltUpShape = { numStreams, active: readActive(file, numStreams) };
  const dim = readCount(metadata, `${architecture}.embedding_length_per_layer_input`, 2 ** 16, 256);
  const global = readRope(file, 'halves');
  const local = plainRope(global.rotaryDim, readNumber(file, 'rope.freq_base_swa', 10000), 'halves');
  const rules = readLayerRules(file);
  const softcap = readSoftcap(file, 'final_logit_softcapping', 30);
  const laurelRank = file.gguf.tensors.get('blk.0.laurel_l.weight')?.dims[1] ?? 64;
  return {
    ropes: [global, local],
    scratch: {
      ...altUpScratch(altUp, embeddingDim),
      ...perLayerScratch(dim, numLayers),
      laurel: embeddingDim,
      laurelRank,
      outputScale: embeddingDim,
    },
    bind(loader) {
      const ends = readEnds(loader, shape, norms);
      const streamEnds = readAltUpEnds(loader, altUp, embeddingDim);
      const tables = readPerLayerTables(loader, shape, { dim, epsilon: norms.epsilon });
      const layers = rules.map((rule, layer) =>
        readLayer(loader, file, { layer, rule, altUp, dim, laurelRank, norms }),
      );
      return (step) => {
        refuseVectors(step);
        embedTokens(step, ends.embedding, Math.sqrt(embeddingDim));
        writeLayerInputs(step, tables);
        spreadStreams(step, streamEnds);
        for (const [index, layer] of layers.entries()) {
          const active = predictStreams(step, layer.altUp, altUp);
          computeActive(step, active, layer);
          correctStreams(step, layer.altUp, altUp);
          addLayerInput(step, index, layer, altUp);
        }
        mergeStreams(step, streamEnds, altUp);
        writeOutputs(step, ends.output, { scale: 1, softcap });
      };
    },
  };
}

interface LayerWeights {
  readonly rule: LayerRule;
  readonly altUp: AltUpWeights;
  readonly attentionNorm: Norm;
  readonly mixer: SharingAttention;
  readonly attentionPostNorm: Norm;
  readonly laurel: { readonly down: Projection; readonly up: Projection; readonly norm: Norm };
  readonly feedForwardNorm: Norm;
  readonly feedForward: FeedForwardWeights;
  readonly feedForwardPostNorm: Norm;
  readonly outputScale: Offset;
  readonly perLayer: ReturnType<typeof readPerLayer>;
}

interface LayerOptions {
  readonly layer: number;
  readonly rule: LayerRule;
  readonly altUp: AltUpShape;
  readonly dim: number;
  readonly laurelRank: number;
  readonly norms: NormRule;
}

function readLayer(loader: WeightLoader, { shape }: ModelFile, options: LayerOptions): LayerWeights {
  const { layer, rule, altUp, dim, laurelRank, norms } = options;
  const { embeddingDim } = shape;
  const name = (part: string): string => `blk.${layer}.${part}`;
  const norm = (part: string): Norm => readNorm(loader, name(part), embeddingDim, norms);
  return {
    rule,
    altUp: readAltUp(loader, layer, altUp, { dim: embeddingDim, norms }),
    attentionNorm: norm('attn_norm'),
    mixer: readSharingAttention(loader, layer, shape, { ...rule, epsilon: norms.epsilon }),
    attentionPostNorm: norm('post_attention_norm'),
    laurel: {
      down: loader.projection(name('laurel_l'), laurelRank, embeddingDim),
      up: loader.projection(name('laurel_r'), embeddingDim, laurelRank),
      norm: norm('laurel_post_norm'),
    },
    feedForwardNorm: norm('ffn_norm'),
    feedForward: readFeedForward(loader, layer, shape),
    feedForwardPostNorm: norm('post_ffw_norm'),
    outputScale: loader.vector(`${name('altup_correct_scale')}.weight`, embeddingDim),
    perLayer: readPerLayer(loader, layer, embeddingDim, { dim, norms }),
  };
}

/** residual = the layer's result for the active prediction. */
function computeActive(step: DecoderStep, active: Offset, layer: LayerWeights): void {
  const { pack, buffers, numTokens, shape } = step;
  const { hidden, residual, attended, gate, up } = buffers;
  const { laurel } = buffers.scratch as { laurel: Offset };
  const count = numTokens * shape.embeddingDim;
  normalizeRows(step, layer.attentionNorm, active, hidden, numTokens);
  addLowRank(step, layer.laurel);
  layer.mixer.attend(step, { x: hidden, norm: null });
  pack.add({ x: active, y: laurel, out: residual, count });
  addAdjusted(step, attended, layer.mixer.output, layer.attentionPostNorm, 1);
  pack.scale({ x: residual, count, factor: Math.SQRT1_2 });
  const input = normalizedInput(step, layer.feedForwardNorm);
  const { feedForward } = layer;
  const { sparsity } = layer.rule;
  if (sparsity === null) {
    activateGate(step, input, feedForward, 'gelu');
  } else {
    multiplyInput(step, input, [
      { ...feedForward.gate, out: gate },
      { ...feedForward.up, out: up },
    ]);
    pack.sparsify({ x: gate, numRows: numTokens, dim: shape.feedForwardDim, threshold: sparsity });
    const activated = { gate, up, out: gate, count: numTokens * shape.feedForwardDim };
    pack.gatedActivation({ ...activated, activation: 'gelu' });
  }
  addAdjusted(step, gate, feedForward.down, layer.feedForwardPostNorm, 1);
}

/** laurel = hidden + norm(up · down · hidden). */
function addLowRank(step: DecoderStep, { down, up, norm }: LayerWeights['laurel']): void {
  const { pack, buffers, numTokens, shape } = step;
  const { laurel, laurelRank } = buffers.scratch as Record<'laurel' | 'laurelRank', Offset>;
  const { hidden } = buffers;
  multiplyInput(step, { x: hidden, norm: null }, [{ ...down, out: laurelRank }]);
  multiplyInput(step, { x: laurelRank, norm: null }, [{ ...up, out: laurel }]);
  normalizeRows(step, norm, laurel, laurel, numTokens);
  pack.add({ x: laurel, y: hidden, out: laurel, count: numTokens * shape.embeddingDim });
}

/** Adds the layer's input to all streams but the first. */
function addLayerInput(step: DecoderStep, index: number, layer: LayerWeights, altUp: AltUpShape): void {
  const { pack, buffers, numTokens, shape } = step;
  const { streams, outputScale } = buffers.scratch as Record<'streams' | 'outputScale', Offset>;
  const width = shape.embeddingDim;
  const count = numTokens * width;
  const [from, to] = [
    { outer: 0, inner: 0 },
    { outer: width, inner: 0 },
  ];
  pack.copyBlocks({ x: layer.outputScale, out: outputScale, numOuter: numTokens, numInner: 1, width, from, to });
  pack.multiply({ x: outputScale, y: streamAt(step, streams, altUp.active), out: outputScale, count });
  multiplyLayerInput(step, index, outputScale, layer.perLayer);
  for (let stream = 1; stream < altUp.numStreams; stream++) {
    const at = streamAt(step, streams, stream);
    pack.add({ x: at, y: buffers.hidden, out: at, count });
  }
}

function readActive(file: ModelFile, numStreams: number): number {
  const active = readNumber(file, 'altup.active_idx', 0);
  if (Number.isSafeInteger(active) && active >= 0 && active < numStreams) return active;
  const message = `gemma3n.altup.active_idx is ${active}, must be from 0 to ${numStreams - 1}, one of ${numStreams} streams`;
  throw new RuvLLMError('invalid_model_file', message, { data: { active, numStreams } });
}

function readLayerRules(file: ModelFile): readonly LayerRule[] {
  const windowed = readWindowedLayers(file, 5);
  const sparsity = readSparsity(file);
  const window = readWindow(file);
  const shared = { scale: 1, softcap: 0 };
  return readKeySources(file.shape, windowed).map((source, layer) => {
    const attention = windowed[layer] ? { ...shared, rope: 1, window } : { ...shared, rope: 0, window: 0 };
    return { ...source, attention, sparsity: sparsity[layer]! };
  });
}

/** Files have -Infinity for layers that keep all activations. */
function readSparsity({ gguf, shape }: ModelFile): readonly (number | null)[] {
  const { numLayers } = shape;
  const key = 'gemma3n.activation_sparsity_scale';
  if (gguf.metadata.get(key) === undefined) {
    const { threshold, numLayers: numSparse } = DEFAULT_SPARSITY;
    return Array.from({ length: numLayers }, (_, layer) => (layer < numSparse ? threshold : null));
  }
  const scales = Array.from(gguf.metadata.numbers(key));
  const bad = scales.findIndex((scale) => !(scale < Infinity));
  if (scales.length !== numLayers || bad !== -1) {
    const problem = bad === -1 ? `${scales.length} values` : `${scales[bad]} for layer ${bad}`;
    throw new RuvLLMError('invalid_model_file', `${key} has ${problem}, the model has ${numLayers} layers`, {
      data: { key, numListed: scales.length, numLayers },
    });
  }
  return scales.map((scale) => (scale === -Infinity ? null : scale));
}
