import { RuvLLMError } from '../../core/errors.ts';
import { loadConstant } from './baselines/constant.ts';
import { loadKnn } from './baselines/knn.ts';
import { loadLinear } from './baselines/linear.ts';
import { loadRidge, ridgeLength } from './baselines/ridge.ts';
import type { Estimator } from './estimator.ts';
import { NUM_QUERY_FEATURES, type PolicyState } from './types.ts';

interface PolicyKind {
  /** Why a state does not fit the candidates and the encoder; null if it does. */
  misfit(state: PolicyState, shape: { numCandidates: number; numBuckets: number; embedding: number }): string | null;
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
    misfit: (state, { numCandidates, embedding }) => {
      const numRows = lengthOf(state, 'rows') / embedding;
      const outcomes = numRows * numCandidates;
      const lengths = { means: numCandidates, rows: numRows * embedding, outcomes, importances: outcomes };
      if (!Number.isSafeInteger(numRows) || state.numbers['width'] !== embedding) return `rows are not of ${embedding} values`; // prettier-ignore
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
  ridge: {
    misfit: (state, { numCandidates }) => firstMisfit(state, { weights: ridgeLength(numCandidates) }),
    load: loadRidge,
  },
};

/** An estimator from a stored state, refused when it does not fit what it is to serve. */
export function loadEstimator(
  state: PolicyState,
  shape: { numCandidates: number; numBuckets: number; embedding: number },
): Estimator {
  const kind = Object.hasOwn(POLICY_KINDS, state.kind) ? POLICY_KINDS[state.kind]! : null;
  if (kind === null)
    throw new RuvLLMError('unsupported', `a stored policy of kind "${String(state.kind).slice(0, 80)}"`);
  const misfit = kind.misfit(state, shape);
  if (misfit !== null) throw new RuvLLMError('invalid_option', `stored policy of kind ${state.kind}: ${misfit}`);
  return kind.load(state);
}
