import { RuvLLMError } from '../core/errors.ts';
import type { Architecture, Decoder } from './architecture.ts';
import { addProjected, embedTokens, writeOutputs } from './decoder-blocks.ts';
import { type NormRule, normalizedInput, readNorm } from './decoder-norms.ts';
import { readEnds } from './decoder-weights.ts';
import { readExpertRules } from './expert-rules.ts';
import { readFeedForwardBlock } from './feed-forward-block.ts';
import { attendLatent, latentScratch, readLatentAttention } from './latent-attention.ts';
import { NORMALIZED_EXPERTS } from './llama.ts';
import { readEpsilon, readFactor, readNumber } from './metadata-keys.ts';
import { readRope, type RopeVariant } from './rope.ts';
import type { ModelFile } from './types.ts';

/** Heads that share one cached row: packs have scratch for this many. */
const MAX_HEADS = 64;

/** DeepSeek V2 and models with its blocks (Moonlight, GLM 4.7 Flash): latent attention, experts after dense layers. */
export const deepseek2: Architecture = { name: 'deepseek2', isCausal: true, experts: 'maybe', open };

function open(file: ModelFile): Decoder {
  const { shape } = file;
  checkSupported(file);
  const norms: NormRule = { kind: 'rms', epsilon: readEpsilon(file) };
  const experts =
    shape.experts === undefined
      ? NORMALIZED_EXPERTS
      : readExpertRules(file, { scores: 'softmax', isNormalized: false });
  const { rope, scale } = readRotation(file);
  return {
    ropes: [rope],
    scratch: latentScratch(shape),
    bind(loader) {
      const ends = readEnds(loader, shape, norms);
      const layers = Array.from({ length: shape.numLayers }, (_, layer) => ({
        norm: readNorm(loader, `blk.${layer}.attn_norm`, shape.embeddingDim, norms),
        attention: readLatentAttention(loader, layer, shape),
        feedForwardNorm: readNorm(loader, `blk.${layer}.ffn_norm`, shape.embeddingDim, norms),
        feedForward: readFeedForwardBlock(loader, layer, shape, { experts }),
      }));
      return (step) => {
        embedTokens(step, ends.embedding, 1);
        for (const [index, { norm, attention, feedForwardNorm, feedForward }] of layers.entries()) {
          const input = normalizedInput(step, norm);
          const attended = attendLatent(step, index, input, attention, { scale, epsilon: norms.epsilon });
          addProjected(step, attended, attention.output);
          feedForward(step, normalizedInput(step, feedForwardNorm));
        }
        writeOutputs(step, ends.output, { scale: 1, softcap: 0 });
      };
    },
  };
}

/**
 * YaRN as DeepSeek's models use it: with a log multiplier m, scores are scaled by (1 + 0.1 m ln factor)², and angles have
 * magnitude 1.
 */
function readRotation(file: ModelFile): { rope: RopeVariant; scale: number } {
  const { plainDim, rotaryDim } = file.shape.latent!;
  const rope = readRope(file, 'adjacent');
  const isYarn = file.gguf.metadata.string(`${file.shape.architecture}.rope.scaling.type`, 'none') === 'yarn';
  const logFactor = isYarn ? Math.log(Math.max(1, readFactor(file, 'rope.scaling.factor', 1))) : 0;
  const multiplier = readNumber(file, 'rope.scaling.yarn_log_multiplier', 0) / 0.1; // The file has a tenth of it.
  const magnitude = multiplier === 0 ? rope.magnitude : rope.magnitude / (1 + 0.1 * logFactor);
  const scale = (magnitude * (1 + 0.1 * multiplier * logFactor)) ** 2 / Math.sqrt(plainDim + rotaryDim);
  if (!(scale > 0 && scale < Infinity)) {
    const message = `${file.shape.architecture}.rope.scaling.yarn_log_multiplier is ${multiplier * 0.1}: scores would be scaled by ${scale}`;
    throw new RuvLLMError('invalid_model_file', message, { data: { multiplier, scale } });
  }
  return { rope: { ...rope, magnitude }, scale };
}

function checkSupported(file: ModelFile): void {
  const { shape, gguf } = file;
  const refuse = (problem: string, data: Record<string, number>): never => {
    throw new RuvLLMError('unsupported', `${shape.architecture}: ${problem}`, { data });
  };
  if (shape.latent === undefined) {
    const key = `${shape.architecture}.attention.kv_lora_rank`;
    throw new RuvLLMError('invalid_model_file', `metadata key "${key}" is missing`, { data: { key } });
  }
  if (shape.numHeads > MAX_HEADS)
    refuse(`${shape.numHeads} heads share one latent row, at most ${MAX_HEADS} are supported`, {
      numHeads: shape.numHeads,
      maxHeads: MAX_HEADS,
    });
  const temperature = gguf.metadata.number(`${shape.architecture}.attention.temperature_scale`, 0);
  if (temperature !== 0)
    refuse('scores scaled by position (attention.temperature_scale) are not supported', { temperature });
}
