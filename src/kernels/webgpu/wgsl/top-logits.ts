import { type KernelSource, main, WORKGROUP, WORKGROUP_SUM } from './common.ts';

/**
 * One workgroup per row. Logits become integers of the same order; four passes over bytes find the k-th largest, then
 * each thread counts its range of ids, so that equal logits are taken by id, and a sort orders the k. The row's maximum,
 * sum of exponentials and number of bad values come from two more passes.
 */
export const TOP_LOGITS: KernelSource = {
  name: 'topLogits',
  params: ['logits', 'numRows', 'vocabSize', 'k', 'values', 'ids', 'stats'],
  code:
    WORKGROUP_SUM +
    `
var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> before: array<vec2<u32>, 256>;
var<workgroup> keys: array<u32, 256>;
var<workgroup> chosen: array<u32, 256>;
var<workgroup> state: vec2<u32>;
/** Larger logits have larger keys; -0 and 0 are equal, and NaN is above all. */
fn keyOf(bits: u32) -> u32 {
  if (bits == 0x80000000u) { return 0x80000000u; }
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}` +
    main(`
  for (var row = wid.x; row < p.numRows; row += nwg.x) {
    let at = p.logits + row * p.vocabSize;
    var prefix = 0u;
    var missing = p.k;
    for (var shift = 24u; shift < 32u; shift -= 8u) {
      atomicStore(&counts[tid], 0u);
      workgroupBarrier();
      for (var i = tid; i < p.vocabSize; i += ${WORKGROUP}u) {
        let key = keyOf(data[at + i]);
        if (shift == 24u || (key >> (shift + 8u)) == (prefix >> (shift + 8u))) { atomicAdd(&counts[(key >> shift) & 255u], 1u); }
      }
      workgroupBarrier();
      if (tid == 0u) {
        var left = missing;
        var digit = 255u;
        for (; digit > 0u; digit--) {
          let count = atomicLoad(&counts[digit]);
          if (count >= left) { break; }
          left -= count;
        }
        state = vec2<u32>(prefix | (digit << shift), left);
      }
      let next = workgroupUniformLoad(&state);
      prefix = next.x;
      missing = next.y;
    }
    // Every thread has a range of ids; \`before\` becomes the numbers of larger and of equal ones in earlier ranges.
    let perThread = (p.vocabSize + ${WORKGROUP - 1}u) / ${WORKGROUP}u;
    let first = min(tid * perThread, p.vocabSize);
    let end = min(first + perThread, p.vocabSize);
    var mine = vec2<u32>(0u, 0u);
    for (var i = first; i < end; i++) {
      let key = keyOf(data[at + i]);
      if (key > prefix) { mine.x += 1u; } else if (key == prefix) { mine.y += 1u; }
    }
    before[tid] = mine;
    workgroupBarrier();
    if (tid == 0u) {
      var sum = vec2<u32>(0u, 0u);
      for (var i = 0u; i < ${WORKGROUP}u; i++) { let count = before[i]; before[i] = sum; sum += count; }
    }
    keys[tid] = 0u;
    chosen[tid] = 0xffffffffu;
    workgroupBarrier();
    var larger = before[tid].x;
    var equal = before[tid].y;
    for (var i = first; i < end; i++) {
      let key = keyOf(data[at + i]);
      if (key > prefix) { keys[larger] = key; chosen[larger] = i; larger += 1u; }
      else if (key == prefix) {
        if (equal < missing) { keys[p.k - missing + equal] = key; chosen[p.k - missing + equal] = i; }
        equal += 1u;
      }
    }
    workgroupBarrier();
    for (var size = 2u; size <= ${WORKGROUP}u; size <<= 1u) {
      for (var stride = size >> 1u; stride > 0u; stride >>= 1u) {
        let other = tid ^ stride;
        let isFirst = tid < other;
        let isAscending = (tid & size) == 0u;
        let a = vec2<u32>(keys[tid], chosen[tid]);
        let b = vec2<u32>(keys[other], chosen[other]);
        let isBefore = a.x > b.x || (a.x == b.x && a.y < b.y);
        workgroupBarrier();
        if (isBefore != (isFirst == isAscending)) { keys[tid] = b.x; chosen[tid] = b.y; }
        workgroupBarrier();
      }
    }
    if (tid < p.k) {
      data[p.ids + row * p.k + tid] = chosen[tid];
      data[p.values + row * p.k + tid] = data[at + min(chosen[tid], p.vocabSize - 1u)];
    }
    let most = num(at + min(chosen[0], p.vocabSize - 1u));
    var sum = 0.0;
    var bad = 0u;
    for (var i = tid; i < p.vocabSize; i += ${WORKGROUP}u) {
      let bits = data[at + i];
      if ((bits & 0x7fffffffu) > 0x7f800000u || bits == 0x7f800000u) { bad += 1u; }
      else if (bits != 0xff800000u) { sum += exp(bitcast<f32>(bits) - most); }
    }
    let total = workgroupSum(sum, tid);
    let numBad = workgroupSum(f32(bad), tid);
    if (tid == 0u) {
      put(p.stats + row * 3u, most);
      put(p.stats + row * 3u + 1u, total);
      put(p.stats + row * 3u + 2u, numBad);
    }
    workgroupBarrier();
  }`),
};
