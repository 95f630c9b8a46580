import { ACTIVATIONS, EXACT_MATH, type KernelSource, main, WORKGROUP } from './common.ts';

/** Numbers of the operations of `map`. */
export const MAP_KINDS = {
  add: 0,
  silu: 1,
  gelu: 2,
  'clamped-swiglu': 3,
  softcap: 4,
  scale: 5,
  erfGelu: 6,
  tanhGelu: 7,
  multiply: 8,
  sigmoidGate: 9,
} as const;

/**
 * erfc by a continued exponential fit (W. J. Cody's ranges as one polynomial of Numerical Recipes, error below 1.2e-7 of
 * the value).
 */
const ERF = `
fn erfOf(x: f32) -> f32 {
  let z = abs(x);
  if (z < 0.5) {
    let y = z * z;
    let series = 1.1283791671 + y * (-0.3761263890 + y * (0.1128379167 + y * (-0.0268661706 + y * (0.0052239776 + y * (-0.0008548327 + y * 0.0001205533)))));
    return x * series;
  }
  let t = 1.0 / (1.0 + 0.5 * z);
  let tail = t * exp(-z * z - 1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806
    + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))));
  return select(1.0 - tail, tail - 1.0, x < 0.0);
}`;

export const MAP: KernelSource = {
  name: 'map',
  params: ['kind', 'x', 'y', 'out', 'count', 'factorF'],
  code:
    EXACT_MATH +
    ACTIVATIONS +
    ERF +
    main(`
  for (var i = wid.x * ${WORKGROUP}u + tid; i < p.count; i += nwg.x * ${WORKGROUP}u) {
    let a = num(p.x + i);
    let b = num(p.y + i);
    var value = a + b;
    switch (p.kind) {
      case 1u, 2u, 3u: { value = gated(p.kind, a, b); }
      case 4u: { value = p.factorF * tanhOf(a / p.factorF); }
      case 5u: { value = a * p.factorF; }
      case 6u: { value = 0.5 * a * (1.0 + erfOf(a * 0.7071067811865476)); }
      case 7u: { value = tanhGelu(a) * 1.0; }
      case 8u: { value = a * b; }
      case 9u: { value = b / (1.0 + exp(-a)); }
      default: {}
    }
    put(p.out + i, value);
  }`),
};

/** The factor of `rmsNorm` for a row; every kernel that normalizes uses it. */
export const RMS_FACTOR = `
fn rmsFactor(at: u32, dim: u32, epsilon: f32, tid: u32) -> f32 {
  var sum = 0.0;
  for (var i = tid; i < dim; i += ${4 * WORKGROUP}u) {
    // Four loads are under way together.
    let a = num(at + i);
    let b = select(0.0, num(at + min(i + ${WORKGROUP}u, dim - 1u)), i + ${WORKGROUP}u < dim);
    let c = select(0.0, num(at + min(i + ${2 * WORKGROUP}u, dim - 1u)), i + ${2 * WORKGROUP}u < dim);
    let d = select(0.0, num(at + min(i + ${3 * WORKGROUP}u, dim - 1u)), i + ${3 * WORKGROUP}u < dim);
    sum = fma(d, d, fma(c, c, fma(b, b, fma(a, a, sum))));
  }
  let total = workgroupSum(sum, tid);
  if (!isFinite32(total)) { return bitcast<f32>(0x7fc00000u | (dim & 0u)); }
  return 1.0 / sqrt(total / f32(dim) + epsilon);
}`;

export const RMS_NORM: KernelSource = {
  name: 'rmsNorm',
  params: ['x', 'weight', 'out', 'numRows', 'dim', 'epsilonF'],
  code:
    EXACT_MATH +
    RMS_FACTOR +
    main(`
  for (var row = wid.x; row < p.numRows; row += nwg.x) {
    let at = p.x + row * p.dim;
    let factor = rmsFactor(at, p.dim, p.epsilonF, tid);
    for (var i = tid; i < p.dim; i += ${WORKGROUP}u) {
      put(p.out + row * p.dim + i, num(at + i) * factor * num(p.weight + i));
    }
  }`),
};

/** The mean is divided exactly: in a row of equal values its error would be multiplied by 1/√epsilon. */
export const LAYER_NORM: KernelSource = {
  name: 'layerNorm',
  params: ['x', 'weight', 'bias', 'out', 'numRows', 'dim', 'epsilonF'],
  code:
    EXACT_MATH +
    main(`
  for (var row = wid.x; row < p.numRows; row += nwg.x) {
    let at = p.x + row * p.dim;
    var sum = 0.0;
    for (var i = tid; i < p.dim; i += ${WORKGROUP}u) { sum += num(at + i); }
    let mean = divide(workgroupSum(sum, tid), f32(p.dim));
    var squares = 0.0;
    for (var i = tid; i < p.dim; i += ${WORKGROUP}u) { let v = num(at + i) - mean; squares = fma(v, v, squares); }
    let variance = workgroupSum(squares, tid) / f32(p.dim);
    var factor = 1.0 / sqrt(variance + p.epsilonF);
    if (!isFinite32(variance)) { factor = bitcast<f32>(0x7fc00000u | (p.dim & 0u)); }
    for (var i = tid; i < p.dim; i += ${WORKGROUP}u) {
      put(p.out + row * p.dim + i, (num(at + i) - mean) * factor * num(p.weight + i) + num(p.bias + i));
    }
  }`),
};

export const COPY_ROWS: KernelSource = {
  name: 'copyRows',
  params: ['x', 'rows', 'out', 'numRows', 'dim'],
  code: main(`
  let count = p.numRows * p.dim;
  for (var i = wid.x * ${WORKGROUP}u + tid; i < count; i += nwg.x * ${WORKGROUP}u) {
    let row = i / p.dim;
    data[p.out + i] = data[p.x + data[p.rows + row] * p.dim + (i - row * p.dim)];
  }`),
};

export const COPY_BLOCKS: KernelSource = {
  name: 'copyBlocks',
  params: ['x', 'out', 'numOuter', 'numInner', 'width', 'fromOuter', 'fromInner', 'toOuter', 'toInner'],
  code: main(`
  let count = p.numOuter * p.numInner * p.width;
  for (var i = wid.x * ${WORKGROUP}u + tid; i < count; i += nwg.x * ${WORKGROUP}u) {
    let block = i / p.width;
    let outer = block / p.numInner;
    let inner = block - outer * p.numInner;
    let at = i - block * p.width;
    data[p.out + outer * p.toOuter + inner * p.toInner + at] = data[p.x + outer * p.fromOuter + inner * p.fromInner + at];
  }`),
};

/** A·x of each token into scratch, then out += scale * B · that. */
export const LOW_RANK_DOWN: KernelSource = {
  name: 'lowRankDown',
  params: ['x', 'a', 'inner', 'rows', 'hasRows', 'numTokens', 'numCols', 'rank'],
  code: main(`
  for (var i = wid.x; i < p.numTokens * p.rank; i += nwg.x) {
    let token = i / p.rank;
    let r = i - token * p.rank;
    var row = token;
    if (p.hasRows == 1u) { row = data[p.rows + token]; }
    var sum = 0.0;
    for (var c = tid; c < p.numCols; c += ${WORKGROUP}u) {
      sum = fma(num(p.a + r * p.numCols + c), num(p.x + row * p.numCols + c), sum);
    }
    let total = workgroupSum(sum, tid);
    if (tid == 0u) { put(p.inner + i, total); }
  }`),
};

export const LOW_RANK_UP: KernelSource = {
  name: 'lowRankUp',
  params: ['inner', 'b', 'out', 'rows', 'hasRows', 'numTokens', 'numRows', 'rank', 'scaleF'],
  code: main(`
  let count = p.numTokens * p.numRows;
  for (var i = wid.x * ${WORKGROUP}u + tid; i < count; i += nwg.x * ${WORKGROUP}u) {
    let token = i / p.numRows;
    let n = i - token * p.numRows;
    var row = token;
    if (p.hasRows == 1u) { row = data[p.rows + token]; }
    var sum = 0.0;
    for (var r = 0u; r < p.rank; r++) { sum = fma(num(p.b + n * p.rank + r), num(p.inner + token * p.rank + r), sum); }
    let at = p.out + row * p.numRows + n;
    put(at, fma(p.scaleF, sum, num(at)));
  }`),
};
