/** Threads of a workgroup in every kernel: the least that all devices support. */
export const WORKGROUP = 256;

export const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Repeated code, a line for each number. */
export const unroll = (count: number, line: (i: number) => string): string => range(count).map(line).join('\n');

/** A kernel: its parameters in order, and its code. A name that ends in `F` is a float. */
export interface KernelSource {
  readonly name: string;
  readonly params: readonly string[];
  readonly code: string;
  /** Declares the arena's words as atomic, for kernels that write parts of words. */
  readonly isAtomic?: boolean;
}

/** The whole WGSL module of a kernel. Binding 0 is the arena, 1 the weights, 2 the pack's scratch. */
export function moduleOf({ params, code, isAtomic = false }: KernelSource, hasSubgroups: boolean): string {
  const fields = params.map((name) => `${name}: ${name.endsWith('F') ? 'f32' : 'u32'}`).join(', ');
  return `${hasSubgroups ? 'enable subgroups;\n' : ''}
struct Params { ${fields} }
@group(0) @binding(0) var<storage, read_write> data: array<${isAtomic ? 'atomic<u32>' : 'u32'}>;
@group(0) @binding(1) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scratch: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> p: Params;
${isAtomic ? ATOMIC_ACCESS : PLAIN_ACCESS}
${reduction('workgroupSum', 'f32', 'sums', (a, b) => `${a} + ${b}`, hasSubgroups)}
${code}`;
}

const PLAIN_ACCESS = `
fn word(i: u32) -> u32 { return data[i]; }
fn num(i: u32) -> f32 { return bitcast<f32>(data[i]); }
fn put(i: u32, value: f32) { data[i] = bitcast<u32>(value); }`;

/** Two threads may write the halves of one word. */
const ATOMIC_ACCESS = `
fn word(i: u32) -> u32 { return atomicLoad(&data[i]); }
fn num(i: u32) -> f32 { return bitcast<f32>(atomicLoad(&data[i])); }
fn put(i: u32, value: f32) { atomicStore(&data[i], bitcast<u32>(value)); }
fn putHalf(i: u32, half: u32) {
  let shift = (i & 1u) * 16u;
  atomicAnd(&data[i >> 1u], ~(0xffffu << shift));
  atomicOr(&data[i >> 1u], half << shift);
}
fn putByte(i: u32, byte: u32) {
  let shift = (i & 3u) * 8u;
  atomicAnd(&data[i >> 2u], ~(0xffu << shift));
  atomicOr(&data[i >> 2u], byte << shift);
}`;

/** Entry point with the usual names; \`tid\` is the thread in its workgroup. */
export const main = (body: string, size: number = WORKGROUP): string => `
@compute @workgroup_size(${size})
fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) nwg: vec3<u32>,
        @builtin(local_invocation_index) tid: u32) {
${body}
}`;

/**
 * A function that reduces a value of all threads in the same order everywhere, so with the same bits. Every thread of the
 * workgroup must call it. `array` is the name of its workgroup memory.
 */
export function reduction(
  name: string,
  type: string,
  array: string,
  join: (a: string, b: string) => string,
  hasSubgroups: boolean,
): string {
  const size = hasSubgroups ? WORKGROUP / 32 : WORKGROUP;
  const halves = (first: number, count: number): string =>
    count === 1 ? `${array}[${first}]` : `(${join(halves(first, count / 2), halves(first + count / 2, count / 2))})`;
  const body = hasSubgroups
    ? `
  var joined = value;
  ${[16, 8, 4, 2, 1].map((d) => `{ let other = subgroupShuffleXor(joined, ${d}u); joined = ${join('joined', 'other')}; }`).join('\n  ')}
  workgroupBarrier();
  if ((tid & 31u) == 0u) { ${array}[tid >> 5u] = joined; }
  workgroupBarrier();
  return ${halves(0, size)};`
    : `
  workgroupBarrier();
  ${array}[tid] = value;
  workgroupBarrier();
  for (var half = ${WORKGROUP / 2}u; half > 0u; half >>= 1u) {
    if (tid < half) { ${array}[tid] = ${join(`${array}[tid]`, `${array}[tid + half]`)}; }
    workgroupBarrier();
  }
  return ${array}[0];`;
  return `
var<workgroup> ${array}: array<${type}, ${size}>;
fn ${name}(value: ${type}, tid: u32) -> ${type} {${body}
}`;
}

/**
 * Conversions in integer arithmetic. WGSL leaves rounding to half and division open to the device, and lets compilers
 * assume that NaN does not occur; pages and quantized activations must be the same on every pack.
 */
export const EXACT_MATH = `
fn isFinite32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }
fn toHalf(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
  if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; }
  if (magnitude >= 0x38800000u) {
    return sign | ((magnitude + 0xfffu + ((magnitude >> 13u) & 1u) - 0x38000000u) >> 13u);
  }
  let exponent = magnitude >> 23u;
  if (exponent < 102u) { return sign; }
  let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  let shift = 126u - exponent;
  let rest = mantissa & ((1u << shift) - 1u);
  let middle = 1u << (shift - 1u);
  var half = mantissa >> shift;
  if (rest > middle || (rest == middle && (half & 1u) == 1u)) { half += 1u; }
  return sign | half;
}
fn fromHalf(half: u32) -> f32 {
  let sign = (half & 0x8000u) << 16u;
  let rest = half & 0x7fffu;
  if (rest >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13u)); }
  if (rest >= 0x400u) { return bitcast<f32>(sign | ((rest << 13u) + 0x38000000u)); }
  let value = f32(rest) * 5.9604644775390625e-8;
  return select(value, -value, sign != 0u);
}
/** Quotient and remainder from an estimate; \`scaled\` may have lost upper bits, the remainder fits. */
fn quotientOf(estimate: u32, scaled: u32, divisor: u32) -> vec2<u32> {
  let rest = bitcast<i32>(scaled - estimate * divisor);
  if (rest < 0) { return vec2<u32>(estimate - 1u, bitcast<u32>(rest) + divisor); }
  if (rest >= bitcast<i32>(divisor)) { return vec2<u32>(estimate + 1u, bitcast<u32>(rest) - divisor); }
  return vec2<u32>(estimate, bitcast<u32>(rest));
}
fn divide(a: f32, b: f32) -> f32 {
  let ua = bitcast<u32>(a);
  let ub = bitcast<u32>(b);
  let ea = (ua >> 23u) & 255u;
  let eb = (ub >> 23u) & 255u;
  if (ea == 0u || eb == 0u || ea == 255u || eb == 255u) { return a / b; }
  var rest = (ua & 0x7fffffu) | 0x800000u;
  let divisor = (ub & 0x7fffffu) | 0x800000u;
  var exponent = i32(ea) - i32(eb) + 127;
  if (rest < divisor) { rest <<= 1u; exponent -= 1; }
  // 25 bits of the quotient in two steps; the float estimate of each is off by one at most.
  let factor = 4096.0 / f32(divisor);
  let high = quotientOf(u32(f32(rest) * factor), rest << 12u, divisor);
  let low = quotientOf(u32(f32(high.y) * factor), high.y << 12u, divisor);
  let quotient = (high.x << 12u) | low.x;
  rest = low.y;
  let sign = (ua ^ ub) & 0x80000000u;
  if (exponent <= 0) { return bitcast<f32>(sign); }
  if (exponent >= 255) { return bitcast<f32>(sign | (ub & 0u) | 0x7f800000u); }
  var bits = (u32(exponent) << 23u) + ((quotient >> 1u) & 0x7fffffu);
  if ((quotient & 1u) == 1u && (rest != 0u || (bits & 1u) == 1u)) { bits += 1u; }
  return bitcast<f32>(sign | bits);
}`;

/** Activations, shared by the fused and the separate kernels so that their bits agree. */
export const ACTIVATIONS = `
fn tanhOf(x: f32) -> f32 {
  let t = exp(-2.0 * abs(x));
  let y = (1.0 - t) / (1.0 + t);
  return select(y, -y, x < 0.0);
}
fn silu(x: f32) -> f32 { return x / (1.0 + exp(-x)); }
fn tanhGelu(value: f32) -> f32 {
  if (value <= -10.0) { return 0.0; }
  if (value >= 10.0) { return value; }
  let x = fromHalf(toHalf(value));
  let inner = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x);
  return fromHalf(toHalf(0.5 * x * (1.0 + tanhOf(inner))));
}
fn clampedSwiglu(x: f32, up: f32) -> f32 {
  let gate = min(x, 7.0);
  return (gate / (1.0 + exp(-1.702 * gate))) * (clamp(up, -7.0, 7.0) + 1.0);
}
fn gated(kind: u32, gate: f32, up: f32) -> f32 {
  if (kind == 1u) { return silu(gate) * up; }
  if (kind == 2u) { return tanhGelu(gate) * up; }
  return clampedSwiglu(gate, up);
}`;
