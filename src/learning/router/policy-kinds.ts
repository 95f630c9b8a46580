import { RuvLLMError } from '../../core/errors.ts';
import { loadBandit } from './baselines/bandit.ts';
import { loadConstant } from './baselines/constant.ts';
import { loadKeyword } from './baselines/keyword.ts';
import { loadKnn } from './baselines/knn.ts';
import { loadLinear } from './baselines/linear.ts';
import { loadMlp, mlpLength } from './baselines/mlp.ts';
import { loadRidge, ridgeLength } from './baselines/ridge.ts';
import type { Estimator } from './estimator.ts';
import { loadFastGrnn } from './fastgrnn/fastgrnn-estimator.ts';
import { DEFAULT_SHAPE, layoutOf } from './fastgrnn/layout.ts';
import { NUM_FEATURES, NUM_QUERY_FEATURES, type PolicyState } from './types.ts';

interface PolicyKind {
  /** What is wrong with a state, given the candidates and encoder it must fit; null if it fits. */
  misfit(state: PolicyState, shape: { numCandidates: number; numBuckets: number; embedding: number }): string | null;
  load(state: PolicyState): Estimator;
}

const lengthOf = (state: PolicyState, name: string): number => state.arrays[name]?.length ?? -1;

function firstMisfit(state: PolicyState, lengths: Record<string, number>): string | null {
  for (const [name, length] of Object.entries(lengths))
    if (lengthOf(state, name) !== length) return `${name} has ${lengthOf(state, name)} values, needs ${length}`;
  for (const [name, array] of Object.entries(state.arrays))
    if (!(name in lengths)) return `an array "${name}" is not known`;
    else if (name !== 'outcomes' && array.some((value) => !Number.isFinite(value))) return `${name} is not finite`;
  return null;
}

function maskMisfit(state: PolicyState, size: number): string | null {
  for (const name of ['wz', 'wh']) {
    const mask = state.arrays[name];
    if (!(mask instanceof Int32Array) || mask.length > size) return `${name} is no mask of ${size} entries`;
    if (mask.some((at, i) => at < 0 || at >= size || (i > 0 && at <= mask[i - 1]!)))
      return `${name} is out of range or order`;
  }
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
  keyword: {
    misfit: (state, { numCandidates }) => {
      const numRules = state.texts?.['words']?.length ?? 0;
      return (
        firstMisfit(state, { means: numCandidates, candidates: numRules, lifts: numRules }) ??
        (state.arrays['candidates']!.some((i) => i < 0 || i >= numCandidates) ? 'a rule names no candidate' : null)
      );
    },
    load: loadKeyword,
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
  MLP: {
    misfit: (state, { numCandidates }) => firstMisfit(state, { params: mlpLength(numCandidates) }),
    load: loadMlp,
  },
  bandit: {
    misfit: (state, { numCandidates }) => {
      const size = NUM_FEATURES + 1;
      return firstMisfit(state, { inverse: numCandidates * size * size, rewards: numCandidates * size });
    },
    load: loadBandit,
  },
  FastGRNN: {
    misfit: (state, { numCandidates }) => {
      const layout = layoutOf({ ...DEFAULT_SHAPE, numCandidates });
      const masks = maskMisfit(state, layout.numHidden * layout.numInputs);
      if (masks !== null) return masks;
      if (state.numbers['numCandidates'] !== numCandidates) return `it is for ${state.numbers['numCandidates']} candidates, there are ${numCandidates}`; // prettier-ignore
      return firstMisfit(state, { params: layout.numParams, wz: lengthOf(state, 'wz'), wh: lengthOf(state, 'wh') });
    },
    load: loadFastGrnn,
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
