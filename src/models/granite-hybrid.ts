import type { Architecture, Decoder } from './architecture.ts';
import { addAdjusted, type AttentionRule, attend, embedTokens, writeOutputs } from './decoder-blocks.ts';
import { type NormRule, normalizedInput, readNorm } from './decoder-norms.ts';
import { readAttention, readEnds } from './decoder-weights.ts';
import { readFeedForwardBlock } from './feed-forward-block.ts';
import { NORMALIZED_EXPERTS } from './llama.ts';
import { mamba2Scratch, type Mamba2Shape, mamba2StateBytes, readMamba2, readMamba2Shape, runMamba2 } from './mamba2.ts';
import { readEpsilon, readFactor } from './metadata-keys.ts';
import { type LayerPlace, readLayerPlaces } from './recurrent-layers.ts';
import { readRope } from './rope.ts';
import type { DecoderShape, ModelFile } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** Granite 4: Mamba 2 in most layers, attention in the others, Granite's factors, and experts if the file has them. */
export const graniteHybrid: Architecture = { name: 'granitehybrid', isCausal: true, experts: 'maybe', open };

function open(file: ModelFile): Decoder {
  const { gguf, shape } = file;
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const mamba = readMamba2Shape(file);
  const places = readLayerPlaces(file);
  const layerBytes = mamba2StateBytes(mamba);
  const isRotated = gguf.metadata.boolean(`${shape.architecture}.rope.scaling.finetuned`, true);
  const attention: AttentionRule = {
    rope: isRotated ? 0 : null,
    scale: readFactor(file, 'attention.scale', 1 / Math.sqrt(shape.headDim)),
    window: 0,
    softcap: 0,
  };
  const embeddingScale = readFactor(file, 'embedding_scale', 1);
  const residualScale = readFactor(file, 'residual_scale', 1);
  const logitScale = 1 / readFactor(file, 'logit_scale', 1); // The file has the divisor.
  return {
    ropes: [readRope(file, 'adjacent')],
    stateBytes: places.filter(({ isRecurrent }) => isRecurrent).length * layerBytes,
    scratch: mamba2Scratch(mamba),
    bind(loader) {
      const weights = readWeights(loader, shape, places, { mamba, norms, residualScale });
      return (step) => {
        embedTokens(step, weights.embedding, embeddingScale);
        for (const { place, norm, mixer, feedForwardNorm, feedForward } of weights.layers) {
          const input = normalizedInput(step, norm);
          if ('kernels' in mixer) {
            const partOffset = place.index * layerBytes;
            const mixed = runMamba2(step, input, mixer, mamba, { partOffset, epsilon: norms.epsilon });
            addAdjusted(step, mixed, mixer.output, null, residualScale);
          } else {
            attend(step, place.index, input, mixer, attention);
            addAdjusted(step, step.buffers.attended, mixer.output, null, residualScale);
          }
          feedForward(step, normalizedInput(step, feedForwardNorm));
        }
        writeOutputs(step, weights.output, { scale: logitScale, softcap: 0 });
      };
    },
  };
}

function readWeights(
  loader: WeightLoader,
  shape: DecoderShape,
  places: readonly LayerPlace[],
  { mamba, norms, residualScale }: { mamba: Mamba2Shape; norms: NormRule; residualScale: number },
) {
  const { embeddingDim } = shape;
  return {
    ...readEnds(loader, shape, norms),
    layers: places.map((place, layer) => ({
      place,
      norm: readNorm(loader, `blk.${layer}.attn_norm`, embeddingDim, norms),
      mixer: place.isRecurrent ? readMamba2(loader, layer, embeddingDim, mamba) : readAttention(loader, layer, shape),
      feedForwardNorm: readNorm(loader, `blk.${layer}.ffn_norm`, embeddingDim, norms),
      feedForward: readFeedForwardBlock(loader, layer, shape, { experts: NORMALIZED_EXPERTS, residualScale }),
    })),
  };
}
