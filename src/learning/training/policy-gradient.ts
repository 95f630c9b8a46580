import { RuvLLMError } from '../../core/errors.ts';
import { labelObjective } from '../lora-training/token-objective.ts';
import type { Trainable, TrainingExample, TrainingModel } from '../lora-training/types.ts';

/** A sampled answer with its advantage over the other samples of its prompt. */
export interface PolicyItem {
  readonly example: TrainingExample;
  readonly advantage: number;
  /** Log probability of each token of the answer when it was sampled. */
  readonly sampledLogps: Float64Array;
  /** The same under the model of the file. */
  readonly referenceLogps: Float64Array;
}

export interface PolicyOptions {
  /** How far the ratio to the sampled probability may move from 1 before its gradient ends. */
  readonly clip: number;
  /** Weight of the divergence from the model of the file. */
  readonly klWeight: number;
}

/** Below this standard deviation all samples of a prompt are equally good, and there is nothing to learn. */
const LEAST_DEVIATION = 1e-6;

/** Rewards of one prompt's samples, centred and divided by their standard deviation; all 0 if they are equal. */
export function groupAdvantages(rewards: readonly number[]): number[] {
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const deviation = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length);
  return rewards.map((reward) => (deviation < LEAST_DEVIATION ? 0 : (reward - mean) / deviation));
}

/**
 * GRPO (Shao et al. 2024, eq. 3 and 4): −min(ratio · A, clipped ratio · A) + klWeight · (exp(d) − d − 1) with d = log p of the file − log p,
 * averaged over the tokens of the answer.
 */
export function createPolicyGradient(model: TrainingModel, { clip, klWeight }: PolicyOptions): Trainable<PolicyItem> {
  return {
    layout: model.layout,
    check({ example, advantage, sampledLogps, referenceLogps }) {
      model.check(example);
      const numTokens = example.tokenIds.length - example.numPromptTokens;
      const isWhole = sampledLogps.length === numTokens && referenceLogps.length === numTokens;
      if (isWhole && Number.isFinite(advantage) && [...sampledLogps, ...referenceLogps].every(Number.isFinite)) return;
      throw new RuvLLMError(
        'invalid_option',
        `an answer of ${numTokens} tokens with ${sampledLogps.length} and ${referenceLogps.length} log probabilities and the advantage ${advantage}: all must be finite`,
        { data: { numTokens, numSampled: sampledLogps.length, numReference: referenceLogps.length } },
      );
    },
    addGradient(parameters, { example, advantage, sampledLogps, referenceLogps }, gradient) {
      const share = 1 / sampledLogps.length;
      const objective = labelObjective((index, logp) => {
        const ratio = Math.exp(logp - sampledLogps[index]!);
        const clipped = Math.min(1 + clip, Math.max(1 - clip, ratio));
        const isClipped = ratio * advantage > clipped * advantage;
        const gap = referenceLogps[index]! - logp;
        const kl = Math.exp(gap) - gap - 1;
        return {
          loss: share * (klWeight * kl - (isClipped ? clipped : ratio) * advantage),
          // d ratio / d logp = ratio; d kl / d logp = 1 − exp(gap).
          slope: share * (klWeight * (1 - Math.exp(gap)) - (isClipped ? 0 : ratio * advantage)),
        };
      });
      return model.addGradient(parameters, example, gradient, { objective });
    },
  };
}
