import type { ActivationRoundingName } from '../../activation-rounding.ts';
import { EXACT_MATH, type KernelSource, main, WORKGROUP } from './common.ts';
import { RMS_FACTOR } from './elementwise.ts';

/** vec4 per block of 32 prepared columns: integers are 32 bytes, then scale and the sums of both halves. */
export const PREPARED_VECTORS = { integer: 3, float: 8 } as const;

/** The largest number of blocks in a row; their peaks are in workgroup memory. */
export const MAX_BLOCKS = 1024;

/** Blocks that a workgroup rounds at a time: eight threads have four values each. */
const BLOCKS_AT_ONCE = WORKGROUP / 8;

/** Parameters of a row's norm. */
export const NORM_PARAMS = ['xAt', 'normWeight', 'hasNorm', 'dim', 'epsilonF'] as const;

/** Functions that normalize and round: `NORM_PARAMS` and `blocks` must be among the kernel's parameters. */
const VALUES = `
fn valueAt(at: u32, i: u32, factor: f32) -> f32 {
  if (i >= p.dim) { return 0.0; }
  let v = num(at + i);
  if (p.hasNorm == 0u) { return v; }
  return v * factor * num(p.normWeight + i);
}
fn fourAt(at: u32, i: u32, factor: f32) -> vec4<f32> {
  return vec4<f32>(valueAt(at, i, factor), valueAt(at, i + 1u, factor), valueAt(at, i + 2u, factor), valueAt(at, i + 3u, factor));
}
fn normFactor(at: u32, tid: u32) -> f32 {
  if (p.hasNorm == 0u) { return 1.0; }
  return rmsFactor(at, p.dim, p.epsilonF, tid);
}`;

const BFLOAT = `
fn bfloat(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
  return bitcast<f32>((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}`;

/** Of equal magnitudes the first counts: its sign is that of the scale. */
const PEAKS = `
fn larger(a: u32, b: u32) -> u32 { return select(a, b, (b & 0x7fffffffu) > (a & 0x7fffffffu)); }
fn peakOf(v: vec4<f32>) -> u32 {
  let bits = bitcast<vec4<u32>>(v);
  return larger(larger(larger(bits.x, bits.y), bits.z), bits.w);
}
`;

/**
 * The peak of a block, which eight threads share, and the sums of its halves. All threads of the workgroup
 * must call these functions.
 */
const inBlocks = (hasSubgroups: boolean): string =>
  hasSubgroups
    ? `
fn blockPeak(v: vec4<f32>, tid: u32) -> u32 {
  var peak = peakOf(v);
  ${[1, 2, 4]
    .map(
      (d) =>
        `{ let other = subgroupShuffleXor(peak, ${d}u); peak = select(larger(peak, other), larger(other, peak), (tid & ${d}u) != 0u); }`,
    )
    .join('\n  ')}
  return peak;
}
/** Right in the first thread of a block. */
fn halfSums(q: vec4<i32>, tid: u32) -> vec2<i32> {
  var sum = q.x + q.y + q.z + q.w;
  sum += subgroupShuffleXor(sum, 1u);
  sum += subgroupShuffleXor(sum, 2u);
  return vec2<i32>(sum, subgroupShuffleXor(sum, 4u));
}`
    : `
var<workgroup> quads: array<u32, ${WORKGROUP}>;
fn blockPeak(v: vec4<f32>, tid: u32) -> u32 {
  workgroupBarrier();
  quads[tid] = peakOf(v);
  workgroupBarrier();
  let first = tid & ~7u;
  var peak = quads[first];
  for (var i = 1u; i < 8u; i++) { peak = larger(peak, quads[first + i]); }
  return peak;
}
/** Right in the first thread of a block. */
fn halfSums(q: vec4<i32>, tid: u32) -> vec2<i32> {
  workgroupBarrier();
  quads[tid] = bitcast<u32>(q.x + q.y + q.z + q.w);
  workgroupBarrier();
  let first = tid & ~7u;
  return bitcast<vec2<i32>>(vec2<u32>(quads[first] + quads[first + 1u] + quads[first + 2u] + quads[first + 3u],
    quads[first + 4u] + quads[first + 5u] + quads[first + 6u] + quads[first + 7u]));
}`;

const ROUND = `
struct Scale { scale: f32, inverse: f32 }
fn roundFour(v: vec4<f32>, inverse: f32) -> vec4<i32> {
  return clamp(vec4<i32>(round(v * inverse)), vec4<i32>(-128), vec4<i32>(127));
}
fn packFour(q: vec4<i32>) -> u32 {
  let bytes = bitcast<vec4<u32>>(q) & vec4<u32>(255u);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}`;

const SCALES = {
  q8_0: `
fn scaleOf(signedPeak: u32) -> Scale {
  let magnitude = signedPeak & 0x7fffffffu;
  if (magnitude == 0u) { return Scale(0.0, 0.0); }
  let peak = bitcast<f32>(magnitude);
  return Scale(fromHalf(toHalf(divide(peak, 127.0))), divide(127.0, peak));
}`,
  q8_k: `
fn scaleOf(peak: u32) -> Scale {
  if ((peak & 0x7fffffffu) == 0u) { return Scale(0.0, 0.0); }
  let inverse = divide(-127.0, bitcast<f32>(peak));
  return Scale(divide(1.0, inverse), inverse);
}`,
} as const;

/** Bytes of workgroup memory that `roundRow` takes, without the rounded row. */
export const roundingBytes = (rounding: 'q8_0' | 'q8_k', blocks: number, hasSubgroups: boolean): number =>
  (hasSubgroups ? 32 : 2 * 4 * WORKGROUP) + (rounding === 'q8_k' ? 4 * blocks : 0);

/** Workgroup memory and functions of `roundRow`. */
export const roundingCode = (rounding: 'q8_0' | 'q8_k', mostBlocks: number, hasSubgroups: boolean): string =>
  RMS_FACTOR +
  VALUES +
  PEAKS +
  inBlocks(hasSubgroups) +
  ROUND +
  SCALES[rounding] +
  (rounding === 'q8_k' ? `\nvar<workgroup> peaks: array<u32, ${mostBlocks}>;` : '');

/**
 * Rounds the row at `at` in passes of `BLOCKS_AT_ONCE` from block `first` on; `factor` is its norm's. Calls `store(block, word, quantized values,
 * scale)` in every thread and `finish(block, scale, sums of both halves)` once a block.
 */
export function roundRow(
  rounding: 'q8_0' | 'q8_k',
  store: (block: string, word: string, q: string, scale: string) => string,
  finish: (block: string, scale: string, sum0: string, sum1: string) => string,
  [first, step]: readonly [string, string] = ['0u', `${BLOCKS_AT_ONCE}u`],
): string {
  return `
    ${
      rounding === 'q8_k'
        ? `
    for (var start = 0u; start < p.blocks; start += ${BLOCKS_AT_ONCE}u) {
      let b = start + (tid >> 3u);
      let peak = blockPeak(fourAt(at, (start * 8u + tid) * 4u, factor), tid);
      if ((tid & 7u) == 0u && b < p.blocks) { peaks[b] = peak; }
    }
    workgroupBarrier();`
        : ''
    }
    for (var start = ${first}; start < p.blocks; start += ${step}) {
      let b = start + (tid >> 3u);
      let v = fourAt(at, (start * 8u + tid) * 4u, factor);
      ${
        rounding === 'q8_k'
          ? `
      var peak = 0u;
      for (var i = b & ~7u; i < min(p.blocks, (b | 7u) + 1u); i++) { peak = larger(peak, peaks[i]); }`
          : 'let peak = blockPeak(v, tid);'
      }
      let scale = scaleOf(peak);
      let q = roundFour(v, scale.inverse);
      let sums = halfSums(q, tid);
      if (b < p.blocks) {
        ${store('b', '(tid & 7u)', 'q', 'scale.scale')}
        if ((tid & 7u) == 0u) {
          ${finish('b', 'scale.scale', 'sums.x', 'sums.y')}
        }
      }
    }`;
}

/** Vectors of a block in `array`, `step` apart: two of bytes, then scale and sums. */
export const storeIntegers = (array: string, at: (block: string) => string, step = '1u') =>
  [
    (block: string, word: string, q: string): string =>
      `${array}[${at(block)} + (${word} >> 2u) * ${step}][${word} & 3u] = packFour(${q});`,
    (block: string, scale: string, sum0: string, sum1: string): string =>
      `${array}[${at(block)} + 2u * ${step}] = vec4<u32>(bitcast<u32>(${scale}), bitcast<u32>(${sum0}), bitcast<u32>(${sum1}), 0u);`,
  ] as const;

const storeFloats = [
  (block: string, word: string, q: string, scale: string): string =>
    `scratch[p.to + (row * p.blocks + ${block}) * 8u + ${word}] = bitcast<vec4<u32>>(vec4<f32>(${q}) * ${scale});`,
  (): string => '',
] as const;

/** Blocks of a row are shared out among the workgroups along y. */
const PART_OF_ROW = [`wid.y * ${BLOCKS_AT_ONCE}u`, `nwg.y * ${BLOCKS_AT_ONCE}u`] as const;

/** Workgroups that share a row. */
export const prepareParts = (rounding: ActivationRoundingName, blocks: number): number =>
  rounding === 'q8_0' ? Math.ceil(blocks / BLOCKS_AT_ONCE) : 1;

/** How prepared rows are stored: one after the other, or, for tiles of integers, block by block, so that neighbouring rows are together. */
export type PreparedForm = 'integer' | 'blocks' | 'float';

const STORES = {
  float: storeFloats,
  integer: storeIntegers('scratch', (block) => `(p.to + (row * p.blocks + ${block}) * 3u)`),
  blocks: storeIntegers('scratch', (block) => `(p.to + ${block} * 3u * p.numRows + row)`, 'p.numRows'),
};

/** Normalizes rows if `hasNorm` is set, rounds them as their weights require and stores them for the products. */
export function prepareKernel(
  rounding: ActivationRoundingName,
  form: PreparedForm,
  hasSubgroups: boolean,
): KernelSource {
  const isRounded = rounding === 'q8_0' || rounding === 'q8_k';
  const [store, finish] = STORES[form];
  return {
    name: `prepare ${rounding} ${form}`,
    params: [...NORM_PARAMS, 'numRows', 'blocks', 'to'],
    code:
      EXACT_MATH +
      (isRounded ? roundingCode(rounding, MAX_BLOCKS, hasSubgroups) : RMS_FACTOR + VALUES + BFLOAT) +
      main(`
  for (var row = wid.x; row < p.numRows; row += nwg.x) {
    let at = p.xAt + row * p.dim;
    let factor = normFactor(at, tid);
    ${isRounded ? roundRow(rounding, store, finish, PART_OF_ROW) : plainRow(rounding)}
    workgroupBarrier();
  }`),
  };
}

const plainRow = (rounding: ActivationRoundingName): string => `
    for (var i = tid; i < p.blocks * 8u; i += ${WORKGROUP}u) {
      var v = fourAt(at, i * 4u, factor);
      ${rounding === 'bf16' ? 'v = vec4<f32>(bfloat(v.x), bfloat(v.y), bfloat(v.z), bfloat(v.w));' : ''}
      scratch[p.to + row * p.blocks * 8u + i] = bitcast<vec4<u32>>(v);
    }`;
