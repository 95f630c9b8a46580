import { RuvLLMError } from '../../../core/errors.ts';

/** Orders minus 1 that are tried; each gives a valid bound, the smallest counts. */
const ORDERS = Array.from({ length: 1200 }, (_, i) => Math.exp(-4 + i / 75));
const BISECTIONS = 100;

/** The ε at δ of a mechanism with ρ-zCDP (Canonne, Kamath and Steinke 2020, proposition 7). */
export function epsilonOf(rho: number, delta: number): number {
  if (rho === 0) return 0;
  let least = Infinity;
  for (const more of ORDERS) {
    const order = 1 + more;
    const epsilon = order * rho + (-Math.log(delta) - Math.log(more) + order * Math.log1p(-1 / order)) / more;
    least = Math.min(least, epsilon);
  }
  return Math.max(0, least);
}

/** The largest ρ whose ε at δ is not above `epsilon`. */
export function rhoFor(epsilon: number, delta: number): number {
  let [low, high] = [0, epsilon];
  for (let i = 0; i < BISECTIONS; i++) {
    const middle = (low + high) / 2;
    if (epsilonOf(middle, delta) <= epsilon) low = middle;
    else high = middle;
  }
  if (low > 0) return low;
  throw new RuvLLMError('invalid_option', `no noise gives an epsilon of ${epsilon} at a delta of ${delta}`, { data: { epsilon, delta } }); // prettier-ignore
}
