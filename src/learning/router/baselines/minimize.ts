/** Past steps that the curvature is estimated from. */
const MEMORY = 8;
const MAX_HALVINGS = 20;

const dot = (a: Float64Array, b: Float64Array): number => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
};

/** Minimizes a smooth convex function from 0 by L-BFGS (Liu and Nocedal 1989). `lossOf` writes the gradient and returns the loss. */
export function minimize(
  size: number,
  numSteps: number,
  lossOf: (point: Float64Array, gradient: Float64Array) => number,
): Float64Array {
  let point = new Float64Array(size);
  let gradient = new Float64Array(size);
  let loss = lossOf(point, gradient);
  const past: { readonly step: Float64Array; readonly change: Float64Array; readonly product: number }[] = [];
  for (let step = 0; step < numSteps; step++) {
    const direction = gradient.slice();
    const shares: number[] = [];
    for (const { step: moved, change, product } of past.toReversed()) {
      const share = dot(moved, direction) / product;
      shares.push(share);
      for (let i = 0; i < size; i++) direction[i]! -= share * change[i]!;
    }
    const last = past.at(-1);
    const length = Math.sqrt(dot(gradient, gradient));
    if (length < 1e-7) break;
    const scale = last === undefined ? 1 / length : last.product / dot(last.change, last.change);
    for (let i = 0; i < size; i++) direction[i]! *= scale;
    for (const { step: moved, change, product } of past) {
      const share = shares.pop()! - dot(change, direction) / product;
      for (let i = 0; i < size; i++) direction[i]! += share * moved[i]!;
    }
    const slope = dot(gradient, direction);
    let rate = 1;
    let [nextPoint, nextGradient, nextLoss] = [point, gradient, loss];
    for (let halving = 0; halving < MAX_HALVINGS; halving++, rate /= 2) {
      nextPoint = point.map((value, i) => value - rate * direction[i]!);
      nextGradient = new Float64Array(size);
      nextLoss = lossOf(nextPoint, nextGradient);
      if (nextLoss <= loss - 1e-4 * rate * slope) break;
    }
    if (!(nextLoss < loss)) break;
    const change = nextGradient.map((value, i) => value - gradient[i]!);
    const moved = nextPoint.map((value, i) => value - point[i]!);
    const product = dot(moved, change);
    if (product > 1e-12) past.push({ step: moved, change, product });
    if (past.length > MEMORY) past.shift();
    [point, gradient, loss] = [nextPoint, nextGradient, nextLoss];
  }
  return point;
}
