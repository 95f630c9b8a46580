/** The distribution function of the standard normal distribution, by its series around 0. */
function normalShare(x: number): number {
  let term = x;
  let sum = x;
  for (let i = 3; Math.abs(term) > 1e-17 && i < 1000; i += 2) {
    term *= (x * x) / i;
    sum += term;
  }
  return 0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);
}

/** The value below which a share of the standard normal distribution is; -Infinity for 0. */
export function normalQuantile(share: number): number {
  if (share === 0) return -Infinity;
  let [low, high] = [-9, 9];
  for (let i = 0; i < 64; i++) {
    const middle = (low + high) / 2;
    if (normalShare(middle) < share) low = middle;
    else high = middle;
  }
  return high;
}
