import { fillWeights, keepWhere } from './candidates.ts';
import { findMassCut, ranksBefore } from './select.ts';
import type { SamplerStep } from './step.ts';

/** Locally typical sampling (Meister et al. 2022, eq. 5): keeps the tokens whose surprise is nearest to the entropy. */
export const TYPICAL_P: SamplerStep = {
  name: 'typical-p',
  kind: 'truncate',
  isActive: (params) => params.typicalP < 1,
  apply(candidates, { typicalP }) {
    const { weights, keys, order, count } = candidates;
    const sum = fillWeights(candidates);
    let entropy = 0;
    for (let i = 0; i < count; i++) {
      const p = (weights[i] as number) / sum;
      // Far tails underflow to 0, where p log p is 0 but would compute as NaN.
      if (p > 0) entropy -= p * Math.log(p);
    }
    for (let i = 0; i < count; i++) keys[i] = -Math.abs(-Math.log((weights[i] as number) / sum) - entropy);
    const cut = findMassCut(keys, weights, count, typicalP * sum, order);
    if (cut >= 0) keepWhere(candidates, (i) => !ranksBefore(keys, cut, i));
  },
};
