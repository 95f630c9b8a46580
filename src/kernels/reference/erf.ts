/** Beyond this, 1 - erf is below the last bit of a double. */
const LAST = 6;

/** The error function in double precision, by a series of positive terms without cancellation. */
export function erf(x: number): number {
  const z = Math.abs(x);
  if (z > LAST) return Math.sign(x);
  let term = z;
  let sum = z;
  for (let n = 1; term > sum * 1e-17; n++) {
    term *= (2 * z * z) / (2 * n + 1);
    sum += term;
  }
  return (Math.sign(x) * 2 * Math.exp(-z * z) * sum) / Math.sqrt(Math.PI);
}
