import { exponentiate, type LogitPart, lossBackward, type Softmax, valueOf } from './token-loss.ts';

/** A row of logits after `exponentiate`, with the label of the answer at this place. */
export interface ObjectiveRow {
  /** Index of the token in the answer. */
  readonly index: number;
  readonly label: number;
  /** Log probability of the label. */
  readonly logp: number;
  readonly parts: readonly LogitPart[];
  readonly softmax: Softmax;
}

/** The loss of an answer as a sum over its rows of logits, in place of −log p of the labels. */
export interface TokenObjective {
  /** The loss of a row. With `hasSlopes` it overwrites the exponentials with the slopes of the loss for the logits. */
  pass(row: ObjectiveRow, hasSlopes: boolean): number;
}

/** The loss of a label as a function of its log probability, and the slope of that function. */
export interface LabelLoss {
  readonly loss: number;
  readonly slope: number;
}

/** Losses that depend on the probability of each label alone. */
export function labelObjective(lossOf: (index: number, logp: number) => LabelLoss): TokenObjective {
  return {
    pass({ index, label, logp, parts, softmax }, hasSlopes) {
      const { loss, slope } = lossOf(index, logp);
      // d logp / dz = label − softmax, the opposite of the slope of −log p.
      if (hasSlopes) lossBackward(parts, label, softmax, false, -slope);
      return loss;
    },
  };
}

/** Writes the log probability of each label into `logps`. */
export const recordLogps = (logps: Float64Array): TokenObjective => ({
  pass({ index, logp }) {
    logps[index] = logp;
    return -logp;
  },
});

/** Writes the next-token distribution of each row into f32[numTokens × vocabSize]. */
export const recordDistributions = (rows: Float32Array, vocabSize: number): TokenObjective => ({
  pass({ index, logp, parts, softmax: { sum } }) {
    for (const { values, start, count, firstId } of parts) {
      const at = index * vocabSize + firstId;
      for (let i = 0; i < count; i++) rows[at + i] = values[start + i]! / sum;
    }
    return -logp;
  },
});

/** KL of which distribution from which: `forward` covers all the teacher says, `reverse` avoids all it does not say. */
export type DivergenceKind = 'forward' | 'reverse';

/** Floor of a teacher's probability in the reverse KL: f32 rounds smaller ones to 0, whose logarithm is −∞. */
const LEAST_PROBABILITY = 1e-30;

/**
 * `factor` times the KL divergence between the recorded distributions `teacher` and those of the model. Slopes for a logit j, with
 * p of the model and q of the teacher: p − q (forward, KL(q‖p)) and p · (log(p / q) − KL) (reverse, KL(p‖q)).
 */
export function divergenceObjective(
  teacher: Float32Array,
  vocabSize: number,
  kind: DivergenceKind,
  factor: number,
): TokenObjective {
  const isForward = kind === 'forward';
  return {
    pass({ index, parts, softmax: { sum } }, hasSlopes) {
      const base = index * vocabSize;
      const logSum = Math.log(sum);
      let divergence = 0;
      for (const { values, start, count, firstId } of parts) {
        for (let i = 0; i < count; i++) {
          const [q, e] = [teacher[base + firstId + i]!, values[start + i]!];
          const weight = isForward ? q : e / sum;
          if (weight === 0) continue;
          const logRatio = Math.log(Math.max(q, LEAST_PROBABILITY)) - Math.log(Math.max(e, LEAST_PROBABILITY)) + logSum;
          divergence += weight * (isForward ? logRatio : -logRatio);
        }
      }
      if (!hasSlopes) return factor * divergence;
      for (const { values, start, count, firstId } of parts) {
        for (let i = 0; i < count; i++) {
          const [q, p] = [teacher[base + firstId + i]!, values[start + i]! / sum];
          const logRatio = p === 0 ? 0 : Math.log(p / Math.max(q, LEAST_PROBABILITY));
          values[start + i] = factor * (isForward ? p - q : p * (logRatio - divergence));
        }
      }
      return factor * divergence;
    },
  };
}

/** Exponentiates a row and passes it on. */
export function passRow(
  objective: TokenObjective,
  parts: readonly LogitPart[],
  { index, label }: Pick<ObjectiveRow, 'index' | 'label'>,
  hasSlopes: boolean,
): number {
  const own = valueOf(parts, label);
  const softmax = exponentiate(parts);
  return objective.pass({ index, label, logp: own - softmax.logSumExp, parts, softmax }, hasSlopes);
}
