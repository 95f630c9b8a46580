import { keepThrough } from './candidates.ts';
import { selectTopK } from './select.ts';
import type { SamplerStep } from './step.ts';

/** Keeps the k highest logits; lower ids among equals. */
export const TOP_K: SamplerStep = {
  name: 'top-k',
  kind: 'truncate',
  isActive: (params) => params.topK > 0,
  apply(candidates, { topK }) {
    const { values, order, count } = candidates;
    if (topK >= count) return;
    selectTopK(values, count, topK, order);
    keepThrough(candidates, order[0] as number);
  },
};
