import { RuvLLMError } from '../../core/errors.ts';
import type { TokenSample } from './types.ts';

/** Tokens and the slope of the loss by the logit of each; the label comes last. */
export interface LogitGradient {
  readonly ids: Int32Array;
  readonly slopes: Float64Array;
}

export interface SampleLimits {
  readonly hiddenDim: number;
  readonly vocabSize: number;
}

/** Least value of 1 − p. */
const LEAST_REST = 1e-6;
const MAX_TOP = 1024;

/** Checks every number of a sample before it is added to shared gradients. */
export function checkSample({ hidden, label, ids, logits, ...rest }: TokenSample, limits: SampleLimits): void {
  const { hiddenDim, vocabSize } = limits;
  const refuse = (message: string): never => {
    throw new RuvLLMError('invalid_option', `a token sample with ${message}`);
  };
  if (hidden.length !== hiddenDim) refuse(`${hidden.length} hidden values instead of ${hiddenDim}`);
  if (ids.length !== logits.length) refuse(`${ids.length} tokens and ${logits.length} logits`);
  if (ids.length > MAX_TOP) refuse(`${ids.length} tokens, at most ${MAX_TOP}`);
  const checkToken = (id: number): void => {
    if (Number.isInteger(id) && id >= 0 && id < vocabSize) return;
    throw new RuvLLMError('invalid_token', `token ${id} is not in a vocabulary of ${vocabSize}`, {
      data: { token: id, vocabSize },
    });
  };
  const checkLogit = (value: number): void => {
    if (!Number.isFinite(value)) throw new RuvLLMError('bad_gradient', `a token sample with the logit ${value}`);
  };
  checkToken(label);
  let hasLabel = false;
  for (let i = 0; i < ids.length; i++) {
    checkToken(ids[i]!);
    checkLogit(logits[i]!);
    hasLabel ||= ids[i] === label;
  }
  const { labelLogit = null, logSumExp = null } = rest;
  if (!hasLabel && labelLogit === null) refuse(`the label ${label}, of which no logit is given`);
  checkLogit(labelLogit ?? 0);
  checkLogit(logSumExp ?? 0);
  for (let i = 0; i < hiddenDim; i++) {
    if (Number.isFinite(hidden[i])) continue;
    throw new RuvLLMError('bad_gradient', `a token sample with the hidden value ${hidden[i]} at ${i}`);
  }
}

/** Slopes of −log p(label), or of −log(1 − p(label)); `delta` is the adapter's addition to a logit. */
export function logitGradient(
  { label, ids, logits, labelLogit, logSumExp = null }: TokenSample,
  isRejected: boolean,
  delta: (id: number) => number,
): LogitGradient {
  let numOthers = 0;
  let own = labelLogit ?? 0;
  const chosen = new Int32Array(ids.length + 1);
  const values = new Float64Array(ids.length + 1);
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] === label) own = logits[i]!;
    else {
      chosen[numOthers] = ids[i]!;
      values[numOthers++] = logits[i]!;
    }
  }
  chosen[numOthers] = label;
  values[numOthers] = own;
  const count = numOthers + 1;
  let max = -Infinity;
  for (let i = 0; i < count; i++) max = Math.max(max, values[i]!);
  // Weight of all other tokens: known only with the sum over the vocabulary, and never negative.
  let tail = 0;
  if (logSumExp !== null) {
    tail = Math.exp(logSumExp - max);
    for (let i = 0; i < count; i++) tail -= Math.exp(values[i]! - max);
    tail = Math.max(0, tail);
  }
  let sum = tail;
  for (let i = 0; i < count; i++) {
    // The cap on the adapter's norm bounds `delta`, so no power overflows.
    sum += values[i] = Math.exp(values[i]! + delta(chosen[i]!) - max);
  }
  const probability = values[numOthers]! / sum;
  let rest = tail;
  for (let i = 0; i < numOthers; i++) rest += values[i]!;
  rest = Math.max(LEAST_REST, rest / sum);
  const slope = (isRejected ? -probability / rest : 1) / sum;
  for (let i = 0; i < numOthers; i++) values[i]! *= slope;
  values[numOthers] = isRejected ? probability : -rest;
  return { ids: chosen.subarray(0, count), slopes: values.subarray(0, count) };
}
