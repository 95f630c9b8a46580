import { RuvLLMError } from '../core/errors.ts';

/** Throws `bad_logits` if sampling is impossible; -Infinity is a mask and allowed. */
export function checkLogits(logits: Float32Array): void {
  // x - x is 0 for every finite x and NaN otherwise: one branchless pass settles nearly every call.
  let poison = 0;
  for (let i = 0; i < logits.length; i++) poison += (logits[i] as number) - (logits[i] as number);
  if (poison === 0 && logits.length > 0) return;
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
