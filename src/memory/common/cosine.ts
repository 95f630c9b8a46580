/** Cosine of two vectors of the same length, -1 to 1 whatever rounding does. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i]!, b[i]!];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return Math.min(1, Math.max(-1, dot / Math.sqrt(aa * bb)));
}
