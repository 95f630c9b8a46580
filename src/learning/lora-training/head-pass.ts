import type { Random } from '../../core/random.ts';
import { addRmsNormBackward } from './backward-ops.ts';
import { lowRankBackward } from './low-rank-backward.ts';
import type { LayoutMatrix } from './parameter-layout.ts';
import { drawLabel, exponentiate, type LogitPart, lossBackward, restOf, valueOf } from './token-loss.ts';
import { passRow, type TokenObjective } from './token-objective.ts';
import { HEAD_ROWS } from './training-buffers.ts';
import { addLowRank, type TrainingStep } from './training-step.ts';
import type { HeadPart } from './training-weights.ts';

/** The labels of an answer and the weight of their gradients. */
export interface AnswerLabels {
  /** Row that predicts the first label. */
  readonly firstRow: number;
  readonly labels: readonly number[];
  readonly isRejected: boolean;
  /** Null: no gradients. */
  readonly factor: number | null;
  readonly random: Random | null;
  /** Replaces the loss of the labels; `factor` then only says whether there are gradients. */
  readonly objective: TokenObjective | null;
}

/** Sums the loss over the labels; with a factor it also adds the gradient and writes that of the residual. */
export async function passHead(
  step: TrainingStep,
  answer: AnswerLabels,
  gradient: Float32Array | null,
): Promise<number> {
  const { pack, shape, buffers, epsilon, weights } = step;
  const { arena } = pack;
  const dim = shape.embeddingDim;
  const numRows = answer.labels.length;
  const x = buffers.residual + answer.firstRow * dim * 4;
  pack.rmsNorm({ x, weight: weights.outputNorm, out: buffers.normalized, numRows, dim, epsilon });
  const dHidden = arena.f32(buffers.gradients.hidden, numRows * dim);
  let total = 0;
  for (let start = 0; start < numRows; start += HEAD_ROWS) {
    const count = Math.min(HEAD_ROWS, numRows - start);
    total += await passRows(step, answer, start, count, gradient);
  }
  if (gradient === null) return total;
  const dResidual = arena.f32(buffers.gradients.residual, step.numTokens * dim);
  dResidual.fill(0);
  if (weights.head[0]!.transposed === null) return total;
  addRmsNormBackward(
    arena.f32(x, numRows * dim),
    arena.f32(weights.outputNorm, dim),
    dHidden,
    dResidual.subarray(answer.firstRow * dim),
    { numRows, epsilon },
  );
  return total;
}

async function passRows(
  step: TrainingStep,
  { labels, isRejected, factor, random, objective }: AnswerLabels,
  start: number,
  count: number,
  gradient: Float32Array | null,
): Promise<number> {
  const { pack, shape, buffers, weights } = step;
  const { arena } = pack;
  const x = buffers.normalized + start * shape.embeddingDim * 4;
  const adapted = step.adapted('output', -1);
  const logitsOf = ({ firstRow }: HeadPart): number => buffers.logits + count * firstRow * 4;
  for (const part of weights.head) {
    const out = logitsOf(part);
    pack.matmul({ x, numTokens: count, outputs: [{ weight: part.weight, bias: part.bias, out, accumulate: false }] });
    addLowRank(step, adapted, x, out, count, part);
  }
  await pack.sync();
  const parts = weights.head.map((part) => ({ ...part, values: arena.f32(logitsOf(part), count * part.numRows) }));
  let total = 0;
  for (let row = 0; row < count; row++) {
    const logits = parts.map(({ values, firstRow, numRows }): LogitPart => ({
      values,
      start: row * numRows,
      firstId: firstRow,
      count: numRows,
    }));
    const label = labels[start + row]!;
    if (objective !== null) {
      total += passRow(objective, logits, { index: start + row, label }, gradient !== null);
      continue;
    }
    const own = valueOf(logits, label);
    const softmax = exponentiate(logits);
    total += isRejected ? -Math.log(restOf(logits, label, softmax)) : softmax.logSumExp - own;
    if (factor === null) continue;
    const target = random === null ? label : drawLabel(logits, softmax, random);
    lossBackward(logits, target, softmax, isRejected && random === null, factor);
  }
  if (gradient === null) return total;
  await headBackward(step, start, count, adapted, logitsOf, gradient);
  return total;
}

async function headBackward(
  step: TrainingStep,
  start: number,
  count: number,
  adapted: LayoutMatrix | undefined,
  logitsOf: (part: HeadPart) => number,
  gradient: Float32Array,
): Promise<void> {
  const { pack, shape, buffers, weights, layout } = step;
  const { arena } = pack;
  const dim = shape.embeddingDim;
  const out = buffers.gradients.hidden + start * dim * 4;
  let isFirst = true;
  for (const part of weights.head) {
    if (part.transposed === null) continue;
    const outputs = [{ weight: part.transposed, bias: null, out, accumulate: !isFirst }];
    pack.matmul({ x: logitsOf(part), numTokens: count, outputs });
    isFirst = false;
  }
  await pack.sync();
  if (adapted === undefined) return;
  const { rank, scale } = layout;
  const { aStart, bStart, numCols } = adapted;
  for (const part of weights.head) {
    const [first, end] = [bStart + part.firstRow * rank, bStart + (part.firstRow + part.numRows) * rank];
    lowRankBackward({
      x: arena.f32(buffers.normalized + start * dim * 4, count * dim),
      dY: arena.f32(logitsOf(part), count * part.numRows),
      a: arena.f32(buffers.parameters + aStart * 4, bStart - aStart),
      b: arena.f32(buffers.parameters + first * 4, end - first),
      dA: gradient.subarray(aStart, bStart),
      dB: gradient.subarray(first, end),
      dX: part.transposed === null ? null : arena.f32(out, count * dim),
      numTokens: count,
      numCols,
      numRows: part.numRows,
      rank,
      scale,
    });
  }
}
