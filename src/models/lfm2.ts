import { MAX_CONV_WIDTH, type Offset } from '../kernels/contract.ts';
import type { Architecture, Decoder } from './architecture.ts';
import {
  addProjected,
  type AttentionRule,
  attend,
  embedTokens,
  multiplyInput,
  writeOutputs,
} from './decoder-blocks.ts';
import type { DecoderStep } from './decoder-step.ts';
import { type Norm, type NormRule, normalizedInput, readNorm } from './decoder-norms.ts';
import { type AttentionWeights, readAttention } from './decoder-weights.ts';
import { readExpertRules } from './expert-rules.ts';
import type { ExpertRules } from './experts.ts';
import { readFeedForwardBlock } from './feed-forward-block.ts';
import { NORMALIZED_EXPERTS } from './llama.ts';
import { readEpsilon } from './metadata-keys.ts';
import { type LayerPlace, readLayerPlaces, stateRows } from './recurrent-layers.ts';
import { readRope } from './rope.ts';
import { readCount } from './read-count.ts';
import type { DecoderShape, ModelFile } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

/** LFM 2: most layers mix tokens by a gated convolution over the last few of them, the others by attention. */
export const lfm2: Architecture = { name: 'lfm2', isCausal: true, open: openLfm2 };

/** LFM 2 with experts after some dense layers. */
export const lfm2moe: Architecture = { name: 'lfm2moe', isCausal: true, experts: 'always', open: openLfm2 };

interface ConvWeights {
  /** Three times [embeddingDim][embeddingDim], stacked in the file. */
  readonly b: Projection;
  readonly c: Projection;
  readonly x: Projection;
  /** f32[width][embeddingDim] */
  readonly kernel: Offset;
  readonly output: Projection;
}

function openLfm2(file: ModelFile): Decoder {
  const { shape, gguf } = file;
  const { embeddingDim, headDim } = shape;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const width = readCount(gguf.metadata, `${shape.architecture}.shortconv.l_cache`, MAX_CONV_WIDTH);
  const places = readLayerPlaces(file);
  const partBytes = (width - 1) * embeddingDim * 4;
  const numConvLayers = places.filter(({ isRecurrent }) => isRecurrent).length;
  const experts =
    shape.experts === undefined ? NORMALIZED_EXPERTS : readExpertRules(file, { scores: 'sigmoid', isNormalized: true });
  const rule: AttentionRule = { rope: 0, scale: 1 / Math.sqrt(headDim), window: 0, softcap: 0 };
  return {
    ropes: [readRope(file, 'halves')],
    stateBytes: numConvLayers * partBytes,
    scratch: { convB: embeddingDim, convC: embeddingDim, convX: embeddingDim },
    bind(loader) {
      const weights = readWeights(loader, shape, places, { width, norms, experts });
      return (step) => {
        embedTokens(step, weights.embedding, 1);
        for (const { place, norm, mixer, feedForwardNorm, feedForward } of weights.layers) {
          if ('kernel' in mixer) {
            convolve(step, norm, mixer, { width, partOffset: place.index * partBytes });
            addProjected(step, step.buffers.scratch.convB!, mixer.output);
          } else {
            attend(step, place.index, normalizedInput(step, norm), mixer, rule, {
              over: 'each',
              epsilon: norms.epsilon,
            });
            addProjected(step, step.buffers.attended, mixer.output);
          }
          feedForward(step, normalizedInput(step, feedForwardNorm));
        }
        writeOutputs(step, weights.output, { scale: 1, softcap: 0 });
      };
    },
  };
}

function readWeights(
  loader: WeightLoader,
  shape: DecoderShape,
  places: readonly LayerPlace[],
  { width, norms, experts }: { width: number; norms: NormRule; experts: ExpertRules },
) {
  const { vocabSize, embeddingDim } = shape;
  const embedding = loader.matrix('token_embd.weight', vocabSize, embeddingDim);
  // The final norm has the name of the embedding's in files of this family.
  const normName = loader.has('output_norm.weight') ? 'output_norm' : 'token_embd_norm';
  const norm = readNorm(loader, normName, embeddingDim, norms);
  const projection = loader.has('output.weight')
    ? loader.projection('output', vocabSize, embeddingDim)
    : { weight: embedding, bias: null, site: 'output' };
  const readMixer = (layer: number, { isRecurrent }: LayerPlace): AttentionWeights | ConvWeights =>
    isRecurrent
      ? readConv(loader, layer, embeddingDim, width)
      : readAttention(loader, layer, shape, { headNorms: 'each' });
  return {
    embedding,
    output: { norm, projection },
    layers: places.map((place, layer) => ({
      place,
      norm: readNorm(loader, `blk.${layer}.attn_norm`, embeddingDim, norms),
      mixer: readMixer(layer, place),
      feedForwardNorm: readNorm(loader, `blk.${layer}.ffn_norm`, embeddingDim, norms),
      feedForward: readFeedForwardBlock(loader, layer, shape, { experts }),
    })),
  };
}

function readConv(loader: WeightLoader, layer: number, dim: number, width: number): ConvWeights {
  const name = (part: string): string => `blk.${layer}.shortconv.${part}`;
  const sites = [`${name('in_proj')}.b`, `${name('in_proj')}.c`, `${name('in_proj')}.x`] as const;
  const [b, c, x] = loader.splitProjection(name('in_proj'), [dim, dim, dim], dim, sites);
  const [kernel] = loader.transposedParts(`${name('conv')}.weight`, [dim], width);
  return { b, c, x, kernel, output: loader.projection(name('out_proj'), dim, dim) };
}

/** convB = c * conv(b * x), with b, c and x from norm(residual). */
function convolve(
  step: DecoderStep,
  norm: Norm,
  { b, c, x, kernel }: ConvWeights,
  { width, partOffset }: { width: number; partOffset: number },
): void {
  const { pack, buffers, shape, numTokens } = step;
  const { convB, convC, convX } = buffers.scratch as Record<'convB' | 'convC' | 'convX', Offset>;
  const channels = shape.embeddingDim;
  const count = numTokens * channels;
  multiplyInput(step, normalizedInput(step, norm), [
    { ...b, out: convB },
    { ...c, out: convC },
    { ...x, out: convX },
  ]);
  pack.multiply({ x: convX, y: convB, out: convX, count });
  pack.causalConv({
    ...stateRows(step, partOffset),
    x: convX,
    weight: kernel,
    bias: null,
    out: convB,
    channels,
    width,
    activation: 'none',
  });
  pack.multiply({ x: convB, y: convC, out: convB, count });
}
