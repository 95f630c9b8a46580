import { fillWeights, keepThrough } from './candidates.ts';
import { findMassCut } from './select.ts';
import type { SamplerStep } from './step.ts';

/** Nucleus sampling: keeps the fewest likeliest tokens whose probabilities reach p. */
export const TOP_P: SamplerStep = {
  name: 'top-p',
  kind: 'truncate',
  isActive: (params) => params.topP < 1,
  apply(candidates, { topP }) {
    const { values, weights, order, count } = candidates;
    const sum = fillWeights(candidates);
    const cut = findMassCut(values, weights, count, topP * sum, order);
    if (cut >= 0) keepThrough(candidates, cut);
  },
};
