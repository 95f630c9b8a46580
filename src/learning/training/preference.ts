import { RuvLLMError } from '../../core/errors.ts';
import { labelObjective } from '../lora-training/token-objective.ts';
import type { Trainable, TrainingExample, TrainingModel } from '../lora-training/types.ts';

/** An answer with its log probability under the model of the file, summed over its tokens. */
export interface ReferenceAnswer {
  readonly example: TrainingExample;
  readonly referenceLogp: number;
}

export interface PreferencePair {
  readonly chosen: ReferenceAnswer;
  readonly rejected: ReferenceAnswer;
}

export interface KtoItem extends ReferenceAnswer {
  readonly isAccepted: boolean;
  /** The answer of another item to this prompt: it estimates how far the model has moved from the file. */
  readonly mismatch: ReferenceAnswer;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
/** log(1 + exp(x)) without overflow. */
const softplus = (x: number): number => Math.max(0, x) + Math.log1p(Math.exp(-Math.abs(x)));

/** The loss of a pair from the log ratios of both answers to the model of the file. */
export const preferenceLoss = (beta: number, chosenRatio: number, rejectedRatio: number): number =>
  softplus(-beta * (chosenRatio - rejectedRatio));

/** The loss of a rated answer from its log ratio, beside a model that has not moved otherwise. */
export const ratingLoss = (beta: number, isAccepted: boolean, ratio: number, baseline = 0): number =>
  1 - sigmoid((isAccepted ? 1 : -1) * (beta * ratio - baseline));

/** How much likelier an answer is than under the model of the file, as a logarithm. */
async function logRatio(
  model: TrainingModel,
  parameters: Float32Array,
  { example, referenceLogp }: ReferenceAnswer,
): Promise<number> {
  const { loss, numTokens } = await model.loss(parameters, { ...example, weight: 1 });
  return -loss * numTokens - referenceLogp;
}

/** Adds `slope` times the gradient of the answer's summed log probability. */
async function addLogpGradient(
  model: TrainingModel,
  parameters: Float32Array,
  { example }: ReferenceAnswer,
  slope: number,
  gradient: Float32Array,
): Promise<void> {
  const objective = labelObjective((_, logp) => ({ loss: slope * logp, slope }));
  await model.addGradient(parameters, example, gradient, { objective });
}

function checkAnswer(model: TrainingModel, { example, referenceLogp }: ReferenceAnswer): void {
  model.check(example);
  if (Number.isFinite(referenceLogp) && referenceLogp <= 0) return;
  throw new RuvLLMError('invalid_option', `a reference log probability of ${referenceLogp}: finite and at most 0`, {
    data: { option: 'referenceLogp' },
  });
}

/** DPO (Rafailov et al. 2023, eq. 7): −log σ(β · (log ratio of the chosen answer − that of the rejected one)). */
export function createPreference(model: TrainingModel, beta: number): Trainable<PreferencePair> {
  return {
    layout: model.layout,
    check({ chosen, rejected }) {
      checkAnswer(model, chosen);
      checkAnswer(model, rejected);
    },
    async addGradient(parameters, { chosen, rejected }, gradient) {
      const chosenRatio = await logRatio(model, parameters, chosen);
      const rejectedRatio = await logRatio(model, parameters, rejected);
      const slope = -beta * sigmoid(-beta * (chosenRatio - rejectedRatio));
      const added = new Float32Array(gradient.length);
      await addLogpGradient(model, parameters, chosen, slope, added);
      await addLogpGradient(model, parameters, rejected, -slope, added);
      // At the end: a failure in the second pass must leave the sum as it was.
      for (let i = 0; i < added.length; i++) gradient[i]! += added[i]!;
      return { loss: preferenceLoss(beta, chosenRatio, rejectedRatio), numTokens: 1 };
    },
  };
}

/**
 * KTO (Ethayarajh et al. 2024, eq. 8) with equal weights for accepted and rejected answers: 1 − σ(±(β · log ratio − z)), where z is the
 * mean of β times the log ratio of mismatched answers in the step, at least 0 and without a gradient.
 */
export function createKto(model: TrainingModel, beta: number): Trainable<KtoItem> {
  let baseline = 0;
  return {
    layout: model.layout,
    check(item) {
      checkAnswer(model, item);
      checkAnswer(model, item.mismatch);
    },
    async prepareBatch(parameters, items) {
      let sum = 0;
      for (const { mismatch } of items) sum += await logRatio(model, parameters, mismatch);
      baseline = Math.max(0, (beta * sum) / items.length);
    },
    async addGradient(parameters, item, gradient) {
      const sign = item.isAccepted ? 1 : -1;
      const loss = ratingLoss(beta, item.isAccepted, await logRatio(model, parameters, item), baseline);
      await addLogpGradient(model, parameters, item, -sign * beta * loss * (1 - loss), gradient);
      return { loss, numTokens: 1 };
    },
  };
}
