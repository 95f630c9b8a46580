import { RuvLLMError } from '../../core/errors.ts';
import type { Random } from '../../core/random.ts';
import type { DecoderShape } from '../../models/types.ts';
import { createAdaptedView } from '../micro-lora/adapted-view.ts';
import { checkSample, logitGradient } from '../micro-lora/token-gradient.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import { checkExample } from './check-example.ts';
import { type ParameterLayout, checkLength, planLayout } from './parameter-layout.ts';
import type { TrainingExample, TrainingModel } from './types.ts';

export interface HeadModelOptions {
  readonly hiddenDim: number;
  readonly vocabSize: number;
  readonly rank: number;
  readonly maxTokens: number;
}

/** Factors of the LM head alone. */
export const planHeadLayout = ({ hiddenDim, vocabSize, rank }: Omit<HeadModelOptions, 'maxTokens'>): ParameterLayout =>
  planLayout(headShape(hiddenDim, vocabSize), { targets: ['output'], numLayers: 0, rank, alpha: 2 * rank });

const headShape = (embeddingDim: number, vocabSize: number): DecoderShape => ({
  architecture: 'head',
  isCausal: true,
  numLayers: 0,
  numKvLayers: 0,
  embeddingDim,
  numHeads: 0,
  numKvHeads: 0,
  headDim: 0,
  feedForwardDim: 0,
  vocabSize,
  contextLength: 0,
});

/**
 * Trains the LM head on final hidden states that the serving engine computed once (`TrainingExample.samples`): every layer below is frozen,
 * so no weights are loaded. Tokens beyond the likeliest and the labels count as one, which no step changes.
 */
export function createHeadModel({ hiddenDim, vocabSize, rank, maxTokens }: HeadModelOptions): TrainingModel {
  const layout = planHeadLayout({ hiddenDim, vocabSize, rank });
  const { scale } = layout;
  const bStart = rank * hiddenDim;
  const config = { hiddenDim, vocabSize, rank, alpha: scale * rank };
  const zero = new Float32Array(layout.numParameters);

  function samplesOf({ samples = [] }: TrainingExample): readonly TokenSample[] {
    if (samples.length === 0) throw new RuvLLMError('invalid_option', 'an example without hidden states');
    for (const sample of samples) checkSample(sample, { hiddenDim, vocabSize });
    return samples;
  }

  function lossOf(parameters: Float32Array, example: TrainingExample): number {
    const view = createAdaptedView(config, parameters);
    let total = 0;
    for (const sample of samplesOf(example)) {
      const logp = view.logp(sample);
      total += (example.weight ?? 1) < 0 ? -Math.log(Math.max(1e-12, 1 - Math.exp(Math.min(0, logp)))) : -logp;
    }
    return total / example.samples!.length;
  }

  function addSample(
    parameters: Float32Array,
    sample: TokenSample,
    gradient: Float32Array,
    { isRejected, factor }: { readonly isRejected: boolean; readonly factor: number },
  ): void {
    const u = new Float64Array(rank);
    const w = new Float64Array(rank);
    for (let r = 0; r < rank; r++) {
      let sum = 0;
      for (let i = 0; i < hiddenDim; i++) sum += parameters[r * hiddenDim + i]! * sample.hidden[i]!;
      u[r] = sum * scale;
    }
    const delta = (id: number): number => {
      let sum = 0;
      for (let r = 0; r < rank; r++) sum += parameters[bStart + id * rank + r]! * u[r]!;
      return sum;
    };
    const { ids, slopes } = logitGradient(sample, isRejected, delta);
    for (let i = 0; i < ids.length; i++) {
      const slope = factor * slopes[i]!;
      const at = bStart + ids[i]! * rank;
      for (let r = 0; r < rank; r++) {
        gradient[at + r]! += slope * u[r]!;
        w[r]! += slope * parameters[at + r]!;
      }
    }
    for (let r = 0; r < rank; r++) {
      const share = w[r]! * scale;
      if (share === 0) continue;
      for (let i = 0; i < hiddenDim; i++) gradient[r * hiddenDim + i]! += share * sample.hidden[i]!;
    }
  }

  return {
    shape: headShape(hiddenDim, vocabSize),
    layout,
    maxTokens,
    memory: { weightBytes: 0, activationBytes: 0 },
    check: (example) => checkExample(example, { maxTokens, vocabSize }),
    async loss(parameters, example) {
      if (parameters !== null) checkLength('parameters', layout, parameters);
      const loss = lossOf(parameters ?? zero, example);
      if (!Number.isFinite(loss)) throw new RuvLLMError('bad_gradient', `the loss of an example is ${loss}`);
      return { loss, numTokens: example.samples!.length };
    },
    async addGradient(parameters, example, gradient, { sampleLabels = null } = {}) {
      checkLength('parameters', layout, parameters);
      checkLength('a gradient', layout, gradient);
      const samples = samplesOf(example);
      const weight = example.weight ?? 1;
      const loss = lossOf(parameters, example);
      if (!Number.isFinite(loss)) throw new RuvLLMError('bad_gradient', `the loss of an example is ${loss}`);
      const numTokens = samples.length;
      const factor = Math.abs(weight) / (sampleLabels === null ? numTokens : Math.sqrt(numTokens));
      for (const sample of samples) {
        const isRejected = weight < 0 && sampleLabels === null;
        const labelled = sampleLabels === null ? sample : drawLabel(sample, sampleLabels);
        addSample(parameters, labelled, gradient, { isRejected, factor });
      }
      return { loss, numTokens };
    },
    dispose: async () => {},
  };
}

/** The sample with a label drawn from the likeliest tokens, by the model itself: the adapter hardly changes the probabilities. */
function drawLabel(sample: TokenSample, random: Random): TokenSample {
  const top = sample.logits[0] ?? 0;
  const weights = Array.from(sample.logits, (logit) => Math.exp(logit - top));
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => (left -= weight) <= 0);
  const at = index === -1 ? 0 : index;
  return { ...sample, label: sample.ids[at]!, labelLogit: sample.logits[at]! };
}
