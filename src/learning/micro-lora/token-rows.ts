import type { LowRankFactors } from '../../adapters/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createAdaptedView } from './adapted-view.ts';
import { INSTANT_LEARNING_RATE } from './instant-learning-rate.ts';
import { checkSample, logitGradient } from './token-gradient.ts';
import type { MicroLora, MicroLoraConfig, MicroLoraState, TokenSample, UpdateReport } from './types.ts';

/** Tokens of an answer that are learned in one step: the least likely ones of an accepted answer, the likeliest of a rejected one. */
const MAX_TOKENS = 8;
/** In logits; a token this far ahead of all others needs no step. */
const SURE_MARGIN = 0.1;
/** Cosine from which two hidden states share a row. */
const SAME_STATE = 0.98;
/** Largest ‖scale · B · A‖, whatever the feedback. */
const MAX_NORM = 1;
const NEUTRAL = 0.1;

interface Pending {
  readonly sample: TokenSample;
  readonly isRejected: boolean;
  readonly strength: number;
}

/**
 * A low-rank addition to the LM head in which each learned token has a row of its own: A holds the direction of its hidden state, B the
 * change of the logits there. Random rows of A would mix all contexts, so that every correction changed every answer. `avoid`, an
 * orthonormal basis of hidden states of unrelated texts, is removed from A, so that their logits do not change at all. With all rows in
 * use, the one with the least effect is given to the next token.
 */
export function createTokenRows(
  { hiddenDim, vocabSize, rank }: Omit<MicroLoraConfig, 'alpha'>,
  from: MicroLoraState | null,
  avoid: readonly Float64Array[],
): MicroLora {
  const config = { hiddenDim, vocabSize, rank, alpha: rank };
  const bStart = rank * hiddenDim;
  const numParameters = bStart + vocabSize * rank;
  if (from !== null && from.parameters.length !== numParameters) {
    throw new RuvLLMError('invalid_option', `a state of ${from.parameters.length} values, not ${numParameters}`);
  }
  const parameters = from?.parameters.slice() ?? new Float32Array(numParameters);
  let version = from?.version ?? 0;
  let pending: Pending[] = [];

  const rowOf = (row: number): Float32Array => parameters.subarray(row * hiddenDim, (row + 1) * hiddenDim);

  /** The squared effect of each row. */
  function effects(): Float64Array {
    const squares = new Float64Array(rank);
    for (let id = bStart; id < numParameters; id += rank) {
      for (let row = 0; row < rank; row++) squares[row]! += parameters[id + row]! ** 2;
    }
    return squares;
  }

  /** The row of a hidden state; null if nothing of it is left without the avoided directions. */
  function claimRow(hidden: Float32Array, taken: ReadonlySet<number>): number | null {
    const direction = Float32Array.from(hidden);
    removeDirections(direction, avoid);
    const length = Math.sqrt(dot(direction, direction));
    if (!(length > 1e-3 * Math.sqrt(dot(hidden, hidden)))) return null;
    for (let i = 0; i < hiddenDim; i++) direction[i]! /= length;
    for (let row = 0; row < rank; row++) if (dot(rowOf(row), direction) > SAME_STATE) return row;
    const squares = effects();
    let chosen = -1;
    for (let row = 0; row < rank; row++) {
      if (!taken.has(row) && (chosen === -1 || squares[row]! < squares[chosen]!)) chosen = row;
    }
    if (chosen === -1) return null;
    rowOf(chosen).set(direction);
    for (let id = bStart + chosen; id < numParameters; id += rank) parameters[id] = 0;
    return chosen;
  }

  /** The tokens that a step is for. */
  function chooseTokens(): readonly Pending[] {
    const view = createAdaptedView(config, parameters);
    const ranked = pending.map((one) => ({ one, ...view.token(one.sample) }));
    const wanted = ranked.filter(({ one, margin }) => one.isRejected || margin < SURE_MARGIN);
    const urgency = ({ one, margin, logp }: (typeof ranked)[number]): number => (one.isRejected ? -logp : margin);
    return wanted
      .sort((a, b) => urgency(a) - urgency(b))
      .slice(0, MAX_TOKENS)
      .map(({ one }) => one);
  }

  /** ‖B · A‖ by the rank × rank products BᵀB and AAᵀ. */
  function normOf(): number {
    const isUsed = effects().map((square) => (square > 0 ? 1 : 0));
    const products = new Float64Array(rank * rank);
    for (let id = bStart; id < numParameters; id += rank) {
      for (let one = 0; one < rank; one++) {
        // Most of B is zero.
        const value = parameters[id + one]!;
        if (value === 0) continue;
        for (let other = 0; other <= one; other++) products[one * rank + other]! += value * parameters[id + other]!;
      }
    }
    let sum = 0;
    for (let one = 0; one < rank; one++) {
      for (let other = 0; other <= one; other++) {
        if (isUsed[one] === 0 || isUsed[other] === 0) continue;
        sum += (one === other ? 1 : 2) * products[one * rank + other]! * dot(rowOf(one), rowOf(other));
      }
    }
    return Math.sqrt(Math.max(0, sum));
  }

  function capNorm(): number {
    const norm = normOf();
    if (norm <= MAX_NORM) return norm;
    for (let i = bStart; i < numParameters; i++) parameters[i]! *= MAX_NORM / norm;
    return MAX_NORM;
  }

  function move(learningRate: number): UpdateReport {
    const tokens = chooseTokens();
    const taken = new Set<number>();
    const changes: { readonly at: number; readonly slope: number }[] = [];
    let squares = 0;
    for (const { sample, isRejected, strength } of tokens) {
      const row = claimRow(sample.hidden, taken);
      if (row === null) continue;
      taken.add(row);
      const u = Float64Array.from({ length: rank }, (_, r) => dot(rowOf(r), sample.hidden));
      const delta = (id: number): number => {
        let sum = 0;
        for (let r = 0; r < rank; r++) sum += parameters[bStart + id * rank + r]! * u[r]!;
        return sum;
      };
      const { ids, slopes } = logitGradient(sample, isRejected, delta);
      for (let i = 0; i < ids.length; i++) {
        const slope = strength * slopes[i]! * u[row]!;
        squares += slope * slope;
        changes.push({ at: bStart + ids[i]! * rank + row, slope });
      }
    }
    const gradientNorm = Math.sqrt(squares);
    if (!Number.isFinite(gradientNorm)) {
      throw new RuvLLMError('bad_gradient', `the gradient of ${tokens.length} tokens has the norm ${gradientNorm}`);
    }
    // Each token moves as far as it would alone.
    const step = learningRate * Math.sqrt(taken.size) * Math.min(1, 1 / gradientNorm);
    if (gradientNorm > 0 && learningRate > 0) {
      for (const { at, slope } of changes) parameters[at]! -= step * slope;
      version++;
    }
    return { version, numTokens: pending.length, gradientNorm, norm: capNorm() };
  }

  return {
    adapt(samples, { quality }) {
      if (!(quality >= 0 && quality <= 1)) throw new RuvLLMError('invalid_option', `a quality of ${quality}: from 0 to 1`, { data: { option: 'quality' } }); // prettier-ignore
      for (const sample of samples) checkSample(sample, config);
      const skipped = samples.length === 0 ? 'no tokens' : Math.abs(quality - 0.5) > NEUTRAL ? null : 'neutral';
      if (skipped !== null) return { isApplied: false, numTokens: 0, skipped };
      const strength = Math.abs(2 * quality - 1);
      for (const sample of samples) pending.push({ sample, isRejected: quality < 0.5, strength });
      return { isApplied: true, numTokens: samples.length, skipped: null };
    },
    applyUpdates(learningRate = INSTANT_LEARNING_RATE) {
      try {
        return move(learningRate);
      } finally {
        pending = [];
      }
    },
    state: () => ({ parameters: parameters.slice(), version }),
    factors: () => microFactors(config, parameters),
  };
}

/** The factors of parameters of this config. */
export function microFactors(
  { hiddenDim, vocabSize, rank, alpha }: MicroLoraConfig,
  parameters: Float32Array,
): readonly LowRankFactors[] {
  const [a, b] = [parameters.slice(0, rank * hiddenDim), parameters.slice(rank * hiddenDim)];
  return [{ target: 'output', layer: -1, numCols: hiddenDim, numRows: vocabSize, rank, scale: alpha / rank, a, b }];
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function addScaled(target: Float32Array | Float64Array, source: ArrayLike<number>, factor: number): void {
  for (let i = 0; i < target.length; i++) target[i]! += factor * source[i]!;
}

/** Removes orthonormal directions from a vector, in place. */
export function removeDirections(vector: Float32Array, axes: readonly Float64Array[]): void {
  for (const axis of axes) addScaled(vector, axis, -dot(vector, axis));
}

/** Extends an orthonormal basis by Gram–Schmidt, twice because of rounding; vectors that add nothing are left out. */
export function orthonormal(
  vectors: readonly Float32Array[],
  from: readonly Float64Array[] = [],
): readonly Float64Array[] {
  const basis = [...from];
  for (const vector of vectors) {
    const rest = Float64Array.from(vector);
    for (let pass = 0; pass < 2; pass++) for (const axis of basis) addScaled(rest, axis, -dot(rest, axis));
    const length = Math.sqrt(dot(rest, rest));
    if (length > 1e-3 * Math.sqrt(dot(vector, vector))) basis.push(rest.map((value) => value / length));
  }
  return basis;
}
