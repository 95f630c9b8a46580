import type { DeltaScanOp } from '../kernels/contract.ts';
import type { Architecture, Decoder } from './architecture.ts';
import {
  addProjected,
  type AttentionRule,
  attend,
  embedTokens,
  multiplyInput,
  writeOutputs,
} from './decoder-blocks.ts';
import { type NormRule, normalizedInput, readNorm } from './decoder-norms.ts';
import { type AttentionWeights, readEnds } from './decoder-weights.ts';
import {
  deltaNetScratch,
  type DeltaNetShape,
  deltaNetStateBytes,
  everyGroup,
  readDeltaNet,
  readDeltaNetShape,
  runDeltaNet,
} from './delta-net.ts';
import { readFeedForwardBlock } from './feed-forward-block.ts';
import { NORMALIZED_EXPERTS } from './llama.ts';
import { readEpsilon, readFactor } from './metadata-keys.ts';
import { type LayerPlace, readLayerPlaces } from './recurrent-layers.ts';
import { readRope } from './rope.ts';
import type { DecoderShape, ModelFile } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

const openWith =
  (sharing: DeltaScanOp['sharing']) =>
  (file: ModelFile): Decoder =>
    open(file, sharing);

/** Qwen 3 Next: gated delta nets in three of four layers, gated attention in the others, experts with a shared one. */
export const qwen3next: Architecture = {
  name: 'qwen3next',
  isCausal: true,
  experts: 'always',
  open: openWith('neighbours'),
};

/** Qwen 3.5, text only: Qwen 3 Next's layers without experts, and another order of heads. */
export const qwen35: Architecture = { name: 'qwen35', isCausal: true, open: openWith('every') };

/** Qwen 3.5 with experts, text only. */
export const qwen35moe: Architecture = { ...qwen35, name: 'qwen35moe', experts: 'always' };

interface GatedAttention extends AttentionWeights {
  /** [numHeads × headDim][embeddingDim]: multiplies the result of attention. */
  readonly gate: Projection;
}

function open(file: ModelFile, sharing: DeltaScanOp['sharing']): Decoder {
  const { shape } = file;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const net = readDeltaNetShape(file, sharing);
  const places = readLayerPlaces(file);
  const layerBytes = deltaNetStateBytes(net);
  const scale = readFactor(file, 'attention.scale', 1 / Math.sqrt(shape.headDim));
  const rule: AttentionRule = { rope: 0, scale, window: 0, softcap: 0 };
  const headNorms = { over: 'each' as const, epsilon: norms.epsilon };
  const gateWidth = shape.numHeads * shape.headDim;
  return {
    ropes: [readRope(file, 'halves')],
    stateBytes: places.filter(({ isRecurrent }) => isRecurrent).length * layerBytes,
    scratch: { ...deltaNetScratch(net), attentionGate: gateWidth },
    bind(loader) {
      const ends = readEnds(loader, shape, norms);
      const layers = places.map((place, layer) => readLayer(loader, layer, { shape, place, net, norms }));
      return (step) => {
        const { pack, buffers, numTokens } = step;
        const gate = buffers.scratch.attentionGate!;
        embedTokens(step, ends.embedding, 1);
        for (const { place, norm, mixer, feedForwardNorm, feedForward } of layers) {
          const input = normalizedInput(step, norm);
          if ('kernels' in mixer) {
            const state = { partOffset: place.index * layerBytes, epsilon: norms.epsilon };
            addProjected(step, runDeltaNet(step, input, mixer, net, state), mixer.output);
          } else {
            const { attended } = buffers;
            multiplyInput(step, input, [{ ...mixer.gate, out: gate }]);
            attend(step, place.index, input, mixer, rule, headNorms);
            pack.sigmoidGate({ x: gate, y: attended, out: attended, count: numTokens * gateWidth });
            addProjected(step, attended, mixer.output);
          }
          feedForward(step, normalizedInput(step, feedForwardNorm));
        }
        writeOutputs(step, ends.output, { scale: 1, softcap: 0 });
      };
    },
  };
}

interface LayerParts {
  readonly shape: DecoderShape;
  readonly place: LayerPlace;
  readonly net: DeltaNetShape;
  readonly norms: NormRule;
}

function readLayer(loader: WeightLoader, layer: number, { shape, place, net, norms }: LayerParts) {
  const { embeddingDim } = shape;
  return {
    place,
    norm: readNorm(loader, `blk.${layer}.attn_norm`, embeddingDim, norms),
    mixer: place.isRecurrent
      ? readDeltaNet(loader, layer, embeddingDim, net)
      : readGatedAttention(loader, layer, shape),
    feedForwardNorm: readNorm(loader, `blk.${layer}.post_attention_norm`, embeddingDim, norms),
    feedForward: readFeedForwardBlock(loader, layer, shape, { experts: NORMALIZED_EXPERTS }),
  };
}

/** The matrix of queries has the rows of a head's gate after those of its query. */
function readGatedAttention(loader: WeightLoader, layer: number, shape: DecoderShape): GatedAttention {
  const { embeddingDim, numHeads, numKvHeads, headDim } = shape;
  const name = (part: string): string => `blk.${layer}.attn_${part}`;
  const pick = (site: string, start: number): Projection =>
    loader.pickedRows(name('q'), everyGroup(numHeads, 2 * headDim, start, headDim), embeddingDim, {
      site,
      totalRows: 2 * numHeads * headDim,
    });
  return {
    q: pick(name('q'), 0),
    gate: pick(`${name('q')}.gate`, headDim),
    k: loader.projection(name('k'), numKvHeads * headDim, embeddingDim),
    v: loader.projection(name('v'), numKvHeads * headDim, embeddingDim),
    output: loader.projection(name('output'), embeddingDim, numHeads * headDim),
    qNorm: loader.vector(`${name('q_norm')}.weight`, headDim),
    kNorm: loader.vector(`${name('k_norm')}.weight`, headDim),
    sinks: null,
  };
}
