import { argmax, keepWhere } from './candidates.ts';
import type { SamplerStep } from './step.ts';

/** Keeps tokens at least minP times as likely as the likeliest one. */
export const MIN_P: SamplerStep = {
  name: 'min-p',
  kind: 'truncate',
  isActive: (params) => params.minP > 0,
  apply(candidates, { minP }) {
    const { values, count } = candidates;
    const threshold = (values[argmax(values, count)] as number) + Math.log(minP);
    keepWhere(candidates, (i) => (values[i] as number) >= threshold);
  },
};
