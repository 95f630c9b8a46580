import { fillWeights, keepWhere } from './candidates.ts';
import { findMassCut, ranksBefore } from './select.ts';
import type { SamplerStep } from './step.ts';

/** Nucleus sampling: keeps the fewest likeliest tokens whose probabilities reach p. */
export const TOP_P: SamplerStep = {
  name: 'top-p',
  kind: 'truncate',
  isActive: (params) => params.topP < 1,
  apply(candidates, { topP }) {
    const { values, weights, keys, order, count } = candidates;
    const sum = fillWeights(candidates);
    for (let i = 0; i < count; i++) keys[i] = values[i] as number;
    const cut = findMassCut(keys, weights, count, topP * sum, order);
    if (cut >= 0) keepWhere(candidates, (i) => !ranksBefore(keys, cut, i));
  },
};
