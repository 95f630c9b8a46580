import { keepWhere } from './candidates.ts';
import { ranksBefore, selectTopK } from './select.ts';
import type { SamplerStep } from './step.ts';

/** Keeps the k highest logits; of equal ones the lower ids. */
export const TOP_K: SamplerStep = {
  name: 'top-k',
  kind: 'truncate',
  isActive: (params) => params.topK > 0,
  apply(candidates, { topK }) {
    const { values, order, count } = candidates;
    if (topK >= count) return;
    selectTopK(values, count, topK, order);
    const worst = order[0] as number;
    const { keys } = candidates;
    // `keepWhere` moves values forward as it goes: the comparison needs a copy that stays.
    for (let i = 0; i < count; i++) keys[i] = values[i] as number;
    keepWhere(candidates, (i) => !ranksBefore(keys, worst, i));
  },
};
