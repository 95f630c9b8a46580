import { RuvLLMError } from '../../core/errors.ts';
import { loadConstant } from './baselines/constant.ts';
import { loadKnn } from './baselines/knn.ts';
import { loadLinear } from './baselines/linear.ts';
import { loadLogistic, logisticLength } from './baselines/logistic.ts';
import { loadRidge, ridgeLength } from './baselines/ridge.ts';
import type { Estimator } from './estimator.ts';
import { NUM_QUERY_FEATURES, type PolicyState } from './types.ts';

interface PolicyShape {
  readonly numCandidates: number;
  readonly numBuckets: number;
  readonly embedding: number;
  /** Width of the sentence vectors; 0: none. */
  readonly vector: number;
}

interface PolicyKind {
  /** Why a state does not fit the candidates and the encoder; null if it does. */
  misfit(state: PolicyState, shape: PolicyShape): string | null;
  load(state: PolicyState): Estimator;
}

const lengthOf = (state: PolicyState, name: string): number => state.arrays[name]?.length ?? -1;

function firstMisfit(state: PolicyState, lengths: Record<string, number>): string | null {
  for (const [name, length] of Object.entries(lengths))
    if (lengthOf(state, name) !== length) return `${name} has ${lengthOf(state, name)} values, needs ${length}`;
  for (const [name, array] of Object.entries(state.arrays))
    if (!(name in lengths)) return `unknown array "${name}"`;
    else if (name !== 'outcomes' && array.some((value) => !Number.isFinite(value))) return `${name} is not finite`;
  return null;
}

/** Every way of judging that can be stored. */
export const POLICY_KINDS: Readonly<Record<string, PolicyKind>> = {
  constant: {
    misfit: ({ numbers }, { numCandidates }) =>
      numbers['numCandidates'] === numCandidates && numbers['candidate']! >= 0 && numbers['candidate']! < numCandidates
        ? null
        : `it is for ${numbers['numCandidates']} candidates, there are ${numCandidates}`,
    load: loadConstant,
  },
  'k-NN': {
    misfit: (state, { numCandidates, embedding, vector }) => {
      const width = vector || embedding;
      const numRows = lengthOf(state, 'rows') / width;
      const outcomes = numRows * numCandidates;
      const lengths = { means: numCandidates, rows: numRows * width, outcomes, importances: outcomes };
      if (!Number.isSafeInteger(numRows) || state.numbers['width'] !== width) return `rows are not of ${width} values`; // prettier-ignore
      return firstMisfit(state, lengths);
    },
    load: loadKnn,
  },
  linear: {
    misfit: (state, { numCandidates, numBuckets }) => {
      const width = NUM_QUERY_FEATURES + numBuckets;
      if (state.numbers['width'] !== width) return `it is ${state.numbers['width']} wide, needs ${width}`;
      return firstMisfit(state, { values: numCandidates * width, means: numCandidates });
    },
    load: loadLinear,
  },
  logistic: {
    misfit: (state, { numCandidates, vector }) => {
      if (vector === 0 || state.numbers['numCandidates'] !== numCandidates)
        return `it is for ${state.numbers['numCandidates']} candidates and vectors, there are ${numCandidates} and ${vector}`;
      return firstMisfit(state, { weights: logisticLength(numCandidates, vector) });
    },
    load: loadLogistic,
  },
  ridge: {
    misfit: (state, { numCandidates, vector }) => {
      const { numCandidates: stored = numCandidates, isByVector } = state.numbers;
      if (isByVector === 1 && vector === 0) return 'it needs vectors, the encoder has none';
      const misfit = firstMisfit(state, { weights: ridgeLength(state, numCandidates, vector) });
      return misfit ?? (stored === numCandidates ? null : `it is for ${stored} candidates, there are ${numCandidates}`);
    },
    load: loadRidge,
  },
};

/** An estimator from a stored state, refused when it does not fit what it is to serve. */
export function loadEstimator(state: PolicyState, shape: PolicyShape): Estimator {
  const kind = Object.hasOwn(POLICY_KINDS, state.kind) ? POLICY_KINDS[state.kind]! : null;
  if (kind === null)
    throw new RuvLLMError('unsupported', `a stored policy of kind "${String(state.kind).slice(0, 80)}"`);
  const misfit = kind.misfit(state, shape);
  if (misfit !== null) throw new RuvLLMError('invalid_option', `stored policy of kind ${state.kind}: ${misfit}`);
  return kind.load(state);
}
