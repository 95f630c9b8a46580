import type { RopeOp } from '../../kernels/contract.ts';

/** dX += the gradient through y = x / rms(x) · weight, row by row. */
export function addRmsNormBackward(
  x: Float32Array,
  weight: Float32Array,
  dY: Float32Array,
  dX: Float32Array,
  { numRows, epsilon }: { numRows: number; epsilon: number },
): void {
  const dim = weight.length;
  for (let row = 0; row < numRows; row++) {
    const start = row * dim;
    let squares = 0;
    let along = 0;
    for (let i = 0; i < dim; i++) {
      const value = x[start + i]!;
      squares += value * value;
      along += dY[start + i]! * weight[i]! * value;
    }
    const inverse = 1 / Math.sqrt(squares / dim + epsilon);
    const share = (along * inverse ** 3) / dim;
    for (let i = 0; i < dim; i++) dX[start + i]! += dY[start + i]! * weight[i]! * inverse - x[start + i]! * share;
  }
}

/** The gradient through silu(gate) · up; `dGate` and `dUp` are overwritten. */
export function gateBackward(
  gate: Float32Array,
  up: Float32Array,
  dOut: Float32Array,
  dGate: Float32Array,
  dUp: Float32Array,
): void {
  for (let i = 0; i < gate.length; i++) {
    const value = gate[i]!;
    const sigmoid = 1 / (1 + Math.exp(-value));
    dUp[i] = dOut[i]! * value * sigmoid;
    dGate[i] = dOut[i]! * up[i]! * sigmoid * (1 + value * (1 - sigmoid));
  }
}

/** Applies the transposed rotation to gradients in place, including its magnitude. */
export function ropeBackward(
  x: Float32Array,
  cosSin: Float32Array,
  {
    numTokens,
    numHeads,
    headDim,
    rotaryDim,
    pairing,
  }: Pick<RopeOp, 'numTokens' | 'numHeads' | 'headDim' | 'rotaryDim' | 'pairing'>,
): void {
  const half = rotaryDim / 2;
  const [step, distance] = pairing === 'adjacent' ? [2, 1] : [1, half];
  for (let token = 0; token < numTokens; token++) {
    for (let head = 0; head < numHeads; head++) {
      const start = (token * numHeads + head) * headDim;
      for (let pair = 0; pair < half; pair++) {
        const cos = cosSin[token * rotaryDim + 2 * pair]!;
        const sin = cosSin[token * rotaryDim + 2 * pair + 1]!;
        const first = start + pair * step;
        const a = x[first]!;
        const b = x[first + distance]!;
        x[first] = a * cos + b * sin;
        x[first + distance] = b * cos - a * sin;
      }
    }
  }
}
