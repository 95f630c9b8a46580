import type { ActivationRoundingName } from '../../activation-rounding.ts';
import { EXACT_MATH, type KernelSource, main, WORKGROUP, WORKGROUP_SUM } from './common.ts';
import { RMS_FACTOR } from './elementwise.ts';

/** vec4 per block of 32 prepared columns: integers are 32 bytes, then scale and the sums of both halves. */
export const PREPARED_VECTORS = { integer: 3, float: 8 } as const;

/** The largest number of blocks in a row; their peaks are in workgroup memory. */
export const MAX_BLOCKS = 1024;

const KINDS: Readonly<Record<ActivationRoundingName, number>> = { none: 0, bf16: 1, q8_0: 2, q8_k: 3 };

/**
 * Normalizes rows if `hasNorm` is set, rounds them as their weights require and stores them for the products: one
 * workgroup per row, one thread per block.
 */
export function prepareKernel(rounding: ActivationRoundingName, form: 'integer' | 'float'): KernelSource {
  const kind = KINDS[rounding];
  return {
    name: `prepare ${rounding} ${form}`,
    params: ['x', 'weight', 'hasNorm', 'numRows', 'dim', 'blocks', 'to', 'epsilonF'],
    code:
      EXACT_MATH +
      WORKGROUP_SUM +
      RMS_FACTOR +
      `
var<workgroup> peaks: array<u32, ${MAX_BLOCKS}>;
fn valueAt(at: u32, i: u32, factor: f32) -> f32 {
  if (i >= p.dim) { return 0.0; }
  let v = num(at + i);
  if (p.hasNorm == 0u) { return v; }
  return v * factor * num(p.weight + i);
}
fn bfloat(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return x; }
  return bitcast<f32>((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}` +
      main(`
  for (var row = wid.x; row < p.numRows; row += nwg.x) {
    let at = p.x + row * p.dim;
    var factor = 1.0;
    if (p.hasNorm == 1u) { factor = rmsFactor(at, p.dim, p.epsilonF, tid); }
    ${kind < 2 ? PLAIN(kind) : ROUNDED(kind, form)}
    workgroupBarrier();
  }`),
  };
}

const PLAIN = (kind: number): string => `
    for (var i = tid; i < p.blocks * 8u; i += ${WORKGROUP}u) {
      var v = vec4<f32>(valueAt(at, i * 4u, factor), valueAt(at, i * 4u + 1u, factor), valueAt(at, i * 4u + 2u, factor), valueAt(at, i * 4u + 3u, factor));
      ${kind === 1 ? 'v = vec4<f32>(bfloat(v.x), bfloat(v.y), bfloat(v.z), bfloat(v.w));' : ''}
      scratch[p.to + row * p.blocks * 8u + i] = bitcast<vec4<u32>>(v);
    }`;

const ROUNDED = (kind: number, form: 'integer' | 'float'): string => `
    for (var b = tid; b < p.blocks; b += ${WORKGROUP}u) {
      var peak = 0u;
      for (var i = 0u; i < 32u; i++) {
        let bits = bitcast<u32>(valueAt(at, b * 32u + i, factor));
        if ((bits & 0x7fffffffu) > (peak & 0x7fffffffu)) { peak = bits; }
      }
      peaks[b] = peak;
    }
    workgroupBarrier();
    for (var b = tid; b < p.blocks; b += ${WORKGROUP}u) {
      var peak = peaks[b];
      ${
        kind === 3
          ? `peak = 0u;
      for (var i = b & ~7u; i < (b | 7u) + 1u; i++) {
        if ((peaks[i] & 0x7fffffffu) > (peak & 0x7fffffffu)) { peak = peaks[i]; }
      }`
          : 'peak &= 0x7fffffffu;'
      }
      var scale = 0.0;
      var inverse = 0.0;
      if (peak != 0u) {
        ${
          kind === 3
            ? `inverse = divide(-127.0, bitcast<f32>(peak));
        scale = divide(1.0, inverse);`
            : `inverse = divide(127.0, bitcast<f32>(peak));
        scale = fromHalf(toHalf(divide(bitcast<f32>(peak), 127.0)));`
        }
      }
      var words: array<u32, 8>;
      var sum0 = 0;
      var sum1 = 0;
      for (var w = 0u; w < 8u; w++) {
        var packed = 0u;
        for (var i = 0u; i < 4u; i++) {
          let q = clamp(i32(round(valueAt(at, b * 32u + w * 4u + i, factor) * inverse)), -128, 127);
          packed |= (u32(q) & 255u) << (8u * i);
          if (w < 4u) { sum0 += q; } else { sum1 += q; }
        }
        words[w] = packed;
      }
      ${form === 'integer' ? STORE_INTEGERS : STORE_FLOATS}
    }`;

const STORE_INTEGERS = `
      let to = p.to + (row * p.blocks + b) * 3u;
      scratch[to] = vec4<u32>(words[0], words[1], words[2], words[3]);
      scratch[to + 1u] = vec4<u32>(words[4], words[5], words[6], words[7]);
      scratch[to + 2u] = vec4<u32>(bitcast<u32>(scale), bitcast<u32>(sum0), bitcast<u32>(sum1), 0u);`;

const STORE_FLOATS = `
      let to = p.to + (row * p.blocks + b) * 8u;
      for (var w = 0u; w < 8u; w++) {
        let q = vec4<i32>(vec4<u32>(words[w]) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
        scratch[to + w] = bitcast<vec4<u32>>(vec4<f32>(q) * scale);
      }`;
