import { type KernelSource, main, WORKGROUP } from './common.ts';

/** Logits of one workgroup of the first kernel. */
export const SLICE_LOGITS = 2048;

/** vec4 that a slice leaves in scratch: its maximum, sum and bad values, then two candidates each. */
export const sliceVectors = (k: number): number => 1 + Math.ceil(k / 2);

/**
 * Logits become integers of the same order. Four passes over bytes find the k-th largest, then each thread counts its
 * range of elements, so that of equal ones the first are taken, and a sort orders the k.
 */
const SELECT = (keyAt: string): string => `
var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> running: array<vec2<u32>, 256>;
var<workgroup> keys: array<u32, 256>;
var<workgroup> chosen: array<u32, 256>;
var<workgroup> state: vec2<u32>;
/** Larger logits have larger keys; -0 and 0 are equal, and NaN is above all. */
fn keyOf(bits: u32) -> u32 {
  if (bits == 0x80000000u) { return 0x80000000u; }
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
${keyAt}
/** Sums over this thread and all after it. */
fn sumFrom(tid: u32) {
  for (var distance = 1u; distance < ${WORKGROUP}u; distance <<= 1u) {
    workgroupBarrier();
    var other = vec2<u32>(0u, 0u);
    if (tid + distance < ${WORKGROUP}u) { other = running[tid + distance]; }
    workgroupBarrier();
    running[tid] += other;
  }
  workgroupBarrier();
}
/** Puts the wanted elements, the largest first, into \`keys\` and \`chosen\`; \`wanted\` is at most \`count\` and 256. */
fn selectLargest(first: u32, count: u32, wanted: u32, tid: u32) {
  var prefix = 0u;
  var missing = wanted;
  for (var shift = 24u; shift < 32u; shift -= 8u) {
    atomicStore(&counts[tid], 0u);
    workgroupBarrier();
    for (var i = tid; i < count; i += ${WORKGROUP}u) {
      let key = keyAt(first, i);
      if (shift == 24u || (key >> (shift + 8u)) == (prefix >> (shift + 8u))) { atomicAdd(&counts[(key >> shift) & 255u], 1u); }
    }
    workgroupBarrier();
    running[tid] = vec2<u32>(atomicLoad(&counts[tid]), 0u);
    sumFrom(tid);
    let above = running[min(tid + 1u, ${WORKGROUP - 1}u)].x * select(1u, 0u, tid == ${WORKGROUP - 1}u);
    if (running[tid].x >= missing && above < missing) { state = vec2<u32>(prefix | (tid << shift), missing - above); }
    let next = workgroupUniformLoad(&state);
    prefix = next.x;
    missing = next.y;
  }
  let perThread = (count + ${WORKGROUP - 1}u) / ${WORKGROUP}u;
  let start = min(tid * perThread, count);
  let end = min(start + perThread, count);
  var mine = vec2<u32>(0u, 0u);
  for (var i = start; i < end; i++) {
    let key = keyAt(first, i);
    if (key > prefix) { mine.x += 1u; } else if (key == prefix) { mine.y += 1u; }
  }
  running[tid] = mine;
  keys[tid] = 0u;
  chosen[tid] = 0xffffffffu;
  sumFrom(tid);
  let all = running[0];
  let before = all - running[tid];
  var larger = before.x;
  var equal = before.y;
  for (var i = start; i < end; i++) {
    let key = keyAt(first, i);
    if (key > prefix) { keys[larger] = key; chosen[larger] = i; larger += 1u; }
    else if (key == prefix) {
      if (equal < missing) { keys[wanted - missing + equal] = key; chosen[wanted - missing + equal] = i; }
      equal += 1u;
    }
  }
  workgroupBarrier();
  for (var size = 2u; size <= ${WORKGROUP}u; size <<= 1u) {
    for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
      let other = tid ^ stride;
      let a = vec2<u32>(keys[tid], chosen[tid]);
      let b = vec2<u32>(keys[other], chosen[other]);
      let isBefore = a.x > b.x || (a.x == b.x && a.y < b.y);
      workgroupBarrier();
      if (isBefore != ((tid < other) == ((tid & size) == 0u))) { keys[tid] = b.x; chosen[tid] = b.y; }
      workgroupBarrier();
    }
  }
}`;

const PARAMS = ['logits', 'numRows', 'vocabSize', 'k', 'values', 'ids', 'stats', 'slices', 'numSlices'];
const SLICE_AT = (row: string, slice: string): string =>
  `p.slices + (${row} * p.numSlices + ${slice}) * (1u + (p.k + 1u) / 2u)`;

/** The best of each slice of a row, with its maximum, sum of exponentials and number of bad values. */
export const TOP_OF_SLICES: KernelSource = {
  name: 'topOfSlices',
  params: PARAMS,
  code:
    SELECT(`fn keyAt(first: u32, i: u32) -> u32 { return keyOf(data[first + i]); }`) +
    main(`
  let row = wid.x;
  let firstId = wid.y * ${SLICE_LOGITS}u;
  let at = p.logits + row * p.vocabSize + firstId;
  let count = min(${SLICE_LOGITS}u, p.vocabSize - firstId);
  selectLargest(at, count, min(p.k, count), tid);
  let to = ${SLICE_AT('row', 'wid.y')};
  for (var i = tid; i < (p.k + 1u) / 2u; i += ${WORKGROUP}u) {
    let a = 2u * i;
    let b = min(2u * i + 1u, ${WORKGROUP - 1}u);
    scratch[to + 1u + i] = vec4<u32>(keys[a], select(0xffffffffu, firstId + chosen[a], a < min(p.k, count)), keys[b], select(0xffffffffu, firstId + chosen[b], b < min(p.k, count)));
  }
  let most = num(at + min(chosen[0], count - 1u));
  var sum = 0.0;
  var bad = 0u;
  for (var i = tid; i < count; i += ${WORKGROUP}u) {
    let bits = data[at + i];
    if ((bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u) { bad += 1u; }
    else if (bits != 0xff800000u) { sum += exp(bitcast<f32>(bits) - most); }
  }
  let total = workgroupSum(sum, tid);
  let numBad = workgroupSum(f32(bad), tid);
  if (tid == 0u) { scratch[to] = bitcast<vec4<u32>>(vec4<f32>(most, total, numBad, 0.0)); }`),
};

/** The best of the slices' best. */
export const TOP_OF_ROWS: KernelSource = {
  name: 'topOfRows',
  params: PARAMS,
  code:
    SELECT(`
fn candidate(row: u32, i: u32) -> vec2<u32> {
  let slice = i / p.k;
  let j = i - slice * p.k;
  let pair = scratch[${SLICE_AT('row', 'slice')} + 1u + (j >> 1u)];
  return select(pair.xy, pair.zw, (j & 1u) == 1u);
}
fn keyAt(first: u32, i: u32) -> u32 { return candidate(first, i).x; }`) +
    main(`
  let row = wid.x;
  selectLargest(row, p.numSlices * p.k, p.k, tid);
  if (tid < p.k) {
    let id = min(candidate(row, chosen[tid]).y, p.vocabSize - 1u);
    data[p.ids + row * p.k + tid] = id;
    data[p.values + row * p.k + tid] = data[p.logits + row * p.vocabSize + id];
  }
  if (tid == 0u) {
    var most = bitcast<f32>(scratch[${SLICE_AT('row', '0u')}].x);
    for (var s = 1u; s < p.numSlices; s++) { most = max(most, bitcast<f32>(scratch[${SLICE_AT('row', 's')}].x)); }
    var total = 0.0;
    var bad = 0.0;
    for (var s = 0u; s < p.numSlices; s++) {
      let part = bitcast<vec4<f32>>(scratch[${SLICE_AT('row', 's')}]);
      if (part.y > 0.0) { total = fma(part.y, exp(part.x - most), total); }
      bad += part.z;
    }
    put(p.stats + row * 3u, most);
    put(p.stats + row * 3u + 1u, total);
    put(p.stats + row * 3u + 2u, bad);
  }`),
};
