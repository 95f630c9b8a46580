/** The attention of a layer as the forward pass computed it; row-major, one row per token. */
export interface AttentionBackward {
  /** f32[numTokens × numHeads × headDim], rotated */
  readonly q: Float32Array;
  /** f32[numTokens × numKvHeads × headDim] */
  readonly k: Float32Array;
  readonly v: Float32Array;
  /** Gradient of the attended values, shaped like q; rows before `firstRow` are ignored. */
  readonly dOut: Float32Array;
  readonly firstRow: number;
  readonly dQ: Float32Array;
  readonly dK: Float32Array;
  readonly dV: Float32Array;
  readonly numTokens: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly scale: number;
  /** 0: the whole context. */
  readonly window: number;
}

/** Overwrites dQ, dK and dV. Weights are recomputed row by row: storing them would take numTokens² per head. */
export function attentionBackward(op: AttentionBackward): void {
  op.dQ.fill(0);
  op.dK.fill(0);
  op.dV.fill(0);
  const weights = new Float64Array(op.numTokens);
  const slopes = new Float64Array(op.numTokens);
  for (let head = 0; head < op.numHeads; head++) {
    for (let token = op.firstRow; token < op.numTokens; token++) rowBackward(op, head, token, weights, slopes);
  }
}

function rowBackward(
  { q, k, v, dOut, dQ, dK, dV, numHeads, numKvHeads, headDim, scale, window }: AttentionBackward,
  head: number,
  token: number,
  weights: Float64Array,
  slopes: Float64Array,
): void {
  const at = (token * numHeads + head) * headDim;
  const kvStride = numKvHeads * headDim;
  const kvHead = Math.floor(head / (numHeads / numKvHeads)) * headDim;
  const first = window === 0 ? 0 : Math.max(0, token - window + 1);
  let max = -Infinity;
  for (let other = first; other <= token; other++) {
    const from = other * kvStride + kvHead;
    let score = 0;
    for (let i = 0; i < headDim; i++) score += q[at + i]! * k[from + i]!;
    score *= scale;
    weights[other] = score;
    if (score > max) max = score;
  }
  let total = 0;
  for (let other = first; other <= token; other++) total += weights[other] = Math.exp(weights[other]! - max);
  // The softmax sums to 1: the mean gradient is subtracted from each weight's.
  let mean = 0;
  for (let other = first; other <= token; other++) {
    const from = other * kvStride + kvHead;
    const weight = weights[other]! / total;
    let slope = 0;
    for (let i = 0; i < headDim; i++) {
      const gradient = dOut[at + i]!;
      slope += gradient * v[from + i]!;
      dV[from + i]! += weight * gradient;
    }
    weights[other] = weight;
    slopes[other] = slope;
    mean += weight * slope;
  }
  for (let other = first; other <= token; other++) {
    const from = other * kvStride + kvHead;
    const gradient = weights[other]! * (slopes[other]! - mean) * scale;
    for (let i = 0; i < headDim; i++) {
      dQ[at + i]! += gradient * k[from + i]!;
      dK[from + i]! += gradient * q[at + i]!;
    }
  }
}
