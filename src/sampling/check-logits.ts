import { RuvLLMError } from '../core/errors.ts';

/** Throws `bad_logits` when nothing can be sampled honestly; -Infinity is a mask and allowed. */
export function checkLogits(logits: Float32Array): void {
  let numNaN = 0;
  let numInfinite = 0;
  let numFinite = 0;
  let first = -1;
  for (let i = 0; i < logits.length; i++) {
    const value = logits[i] as number;
    if (value - value === 0) numFinite++;
    else if (value !== -Infinity) {
      if (first < 0) first = i;
      if (Number.isNaN(value)) numNaN++;
      else numInfinite++;
    }
  }
  if (first < 0 && numFinite > 0) return;
  const where = first < 0 ? '' : `, first at ${first}`;
  throw new RuvLLMError(
    'bad_logits',
    `${logits.length} logits: ${numNaN} NaN, ${numInfinite} +Infinity${where}, ${numFinite} finite`,
    { data: { numLogits: logits.length, numNaN, numInfinite, numFinite, firstBadIndex: first } },
  );
}
