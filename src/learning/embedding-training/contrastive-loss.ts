/** Unit embeddings of a batch: row i of `anchors` belongs to candidate i; further candidates are hard negatives. */
export interface ContrastiveBatch {
  readonly anchors: readonly Float32Array[];
  /** The positives in the order of the anchors, then the negatives. */
  readonly candidates: readonly Float32Array[];
  /** Whether a candidate also belongs to the anchor and must not count as a negative. */
  isMasked(anchor: number, candidate: number): boolean;
}

export interface ContrastiveGradient {
  /** Mean over the anchors. */
  readonly loss: number;
  /** By anchor and by candidate: the derivative by each projected, normalized value. */
  readonly anchors: readonly Float32Array[];
  readonly candidates: readonly Float32Array[];
}

/** InfoNCE (van den Oord et al. 2018): −log softmax of the positive's cosine among those of all candidates, divided by the temperature. */
export function contrastiveLoss(
  { anchors, candidates, isMasked }: ContrastiveBatch,
  temperature: number,
): ContrastiveGradient {
  const width = anchors[0]!.length;
  const zeros = (): Float32Array => new Float32Array(width);
  const gradients = { anchors: anchors.map(zeros), candidates: candidates.map(zeros) };
  let loss = 0;
  for (const [i, anchor] of anchors.entries()) {
    const logits = candidates.map((candidate, j) => (j !== i && isMasked(i, j) ? -Infinity : dot(anchor, candidate) / temperature)); // prettier-ignore
    const most = Math.max(...logits);
    const weights = logits.map((logit) => Math.exp(logit - most));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    loss += (Math.log(total) + most - logits[i]!) / anchors.length;
    for (const [j, candidate] of candidates.entries()) {
      const slope = (weights[j]! / total - Number(j === i)) / (temperature * anchors.length);
      if (slope === 0) continue;
      addScaled(gradients.anchors[i]!, candidate, slope);
      addScaled(gradients.candidates[j]!, anchor, slope);
    }
  }
  return { loss, ...gradients };
}

export function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function addScaled(target: Float32Array, values: Float32Array, scale: number): void {
  for (let i = 0; i < target.length; i++) target[i]! += scale * values[i]!;
}
