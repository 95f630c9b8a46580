import type { KvPrecision } from '../../contract.ts';
import { ACTIVATIONS, EXACT_MATH, type KernelSource, main, reduction, unroll, WORKGROUP } from './common.ts';

/** Context tokens of one pass over a workgroup; passes start at multiples of it, so they never depend on the batch. */
export const CHUNK_TOKENS = WORKGROUP;

export interface AttentionShape {
  readonly headDim: number;
  readonly precision: KvPrecision;
  readonly packed: KvPrecision | null;
  /** Query heads of one workgroup; they read the same keys and values. */
  readonly numTogether: 1 | 2 | 4;
  readonly hasSubgroups: boolean;
}

const TYPES = { 1: 'f32', 2: 'vec2<f32>', 4: 'vec4<f32>' } as const;

export const ATTENTION_PARAMS = [
  'q',
  'out',
  'numRows',
  'numHeads',
  'numKvHeads',
  'sequences',
  'numSequences',
  'tables',
  'base',
  'pageWords',
  'packedBase',
  'packedWords',
  'window',
  'seesAll',
  'sinks',
  'hasSinks',
  'parts',
  'numParts',
  // Sequences with at least as many rows belong to tiles; 0: there are none.
  'tileRows',
  'scaleF',
  'softcapF',
];

/** Values of keys and values at a page's word; byte offsets within a head follow `KvRegion`. */
export const READERS: Readonly<Record<KvPrecision, (headDim: number, suffix: string) => string>> = {
  f16: (headDim, suffix) => `
fn key${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let i = (head * ${headDim}u + d) * 16u + slot;
  return unpack2x16float(data[page + (i >> 1u)])[i & 1u];
}
fn value${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let i = ((p.numKvHeads + head) * 16u + slot) * ${headDim}u + d;
  return unpack2x16float(data[page + (i >> 1u)])[i & 1u];
}`,
  f32: (headDim, suffix) => `
fn key${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 { return num(page + (head * ${headDim}u + d) * 16u + slot); }
fn value${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  return num(page + ((p.numKvHeads + head) * 16u + slot) * ${headDim}u + d);
}`,
  q8: (headDim, suffix) => {
    const headBytes = 34 * headDim + 32;
    const values = 18 * headDim;
    return `
fn key${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let at = page * 4u + head * ${headBytes}u;
  return f32(signedByte(at + ${2 * headDim}u + d * 16u + slot)) * halfAt(at + 2u * d);
}
fn value${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let at = page * 4u + head * ${headBytes}u + ${values}u;
  return f32(signedByte(at + 32u + slot * ${headDim}u + d)) * halfAt(at + 2u * slot);
}`;
  },
  q4: (headDim, suffix) => {
    const headBytes = 20 * headDim + 64;
    const values = 12 * headDim;
    return `
fn key${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let at = page * 4u + head * ${headBytes}u;
  let level = (byteAt(at + ${4 * headDim}u + d * 8u + (slot & 7u)) >> ((slot >> 3u) * 4u)) & 15u;
  return f32(level) * halfAt(at + 2u * d) + halfAt(at + ${2 * headDim}u + 2u * d);
}
fn value${suffix}(page: u32, head: u32, d: u32, slot: u32) -> f32 {
  let at = page * 4u + head * ${headBytes}u + ${values}u;
  let isHigh = d >= ${headDim / 2}u;
  let level = (byteAt(at + 64u + slot * ${headDim / 2}u + select(d, d - ${headDim / 2}u, isHigh)) >> select(0u, 4u, isHigh)) & 15u;
  return f32(level) * halfAt(at + 2u * slot) + halfAt(at + 32u + 2u * slot);
}`;
  },
};

export const BYTES = `
fn byteAt(at: u32) -> u32 { return (data[at >> 2u] >> ((at & 3u) * 8u)) & 255u; }
fn signedByte(at: u32) -> i32 { return i32(byteAt(at) << 24u) >> 24u; }
fn halfAt(at: u32) -> f32 { return unpack2x16float(data[at >> 2u])[(at >> 1u) & 1u]; }`;

/** Loads that are under way together: one after the other, their latencies would add up. */
const VALUES_AT_ONCE = 8;
const KEYS_AT_ONCE = [16, 8, 4, 2, 1];

const nextPowerOfTwo = (value: number): number => 2 ** Math.ceil(Math.log2(value));

/**
 * Both kernels add chunks with `addChunk` in order, so it does not matter whether one workgroup visits all chunks of a
 * row, or several visit one each.
 */
function sharedCode({ headDim, precision, packed, numTogether, hasSubgroups }: AttentionShape): string {
  const type = TYPES[numTogether];
  /** A number of each head. */
  const heads = (line: (h: number) => string): string =>
    `${type}(${Array.from({ length: numTogether }, (_, h) => line(h)).join(', ')})`;
  const ofHead = (value: string, h: number): string => (numTogether === 1 ? value : `${value}[${h}]`);
  const lanes = Math.min(WORKGROUP, nextPowerOfTwo(headDim));
  const groups = WORKGROUP / lanes;
  const dims = Math.ceil(headDim / WORKGROUP);
  const unrolled = KEYS_AT_ONCE.find((count) => headDim % count === 0)!;
  const read = (what: 'key' | 'value', args: string): string =>
    packed === null ? `${what}Plain(p.base + u32(entry) * p.pageWords, ${args})` : `read_${what}(entry, ${args})`;
  const either = (what: 'key' | 'value'): string => `
fn read_${what}(entry: i32, head: u32, d: u32, slot: u32) -> f32 {
  if (entry < 0) { return ${what}Packed(p.packedBase + u32(~entry) * p.packedWords, head, d, slot); }
  return ${what}Plain(p.base + u32(entry) * p.pageWords, head, d, slot);
}`;
  return `${EXACT_MATH}${ACTIVATIONS}${BYTES}
${READERS[precision](headDim, 'Plain')}
${packed === null ? '' : READERS[packed](headDim, 'Packed') + either('key') + either('value')}
${reduction('workgroupMax', type, 'peaks', (a, b) => `max(${a}, ${b})`, hasSubgroups)}
${reduction('workgroupTotal', type, 'totals', (a, b) => `${a} + ${b}`, hasSubgroups)}
var<workgroup> query: array<${type}, ${headDim}>;
var<workgroup> chances: array<${type}, ${CHUNK_TOKENS}>;
var<workgroup> partials: array<${type}, ${WORKGROUP}>;
var<workgroup> entries: array<i32, ${CHUNK_TOKENS / 16}>;
var<workgroup> place: array<i32, 4>;

/** Exponential sums of some tokens: the largest score, the sum, and this thread's part of the weighted values. */
struct Part { most: ${type}, total: ${type}, ${Array.from({ length: dims }, (_, j) => `v${j}: ${type}`).join(', ')} }

/** The row's first and last token: place becomes first, last, table, and whether there is such a row. */
fn findRow(row: u32, tid: u32) {
  if (tid == 0u) { place[3] = 0; }
  workgroupBarrier();
  for (var s = tid; s < p.numSequences; s += ${WORKGROUP}u) {
    let at = p.sequences + 4u * s;
    let firstRow = data[at];
    let numRows = data[at + 1u];
    if (row >= firstRow && row < firstRow + numRows && (p.tileRows == 0u || numRows < p.tileRows)) {
      let context = i32(data[at + 2u]);
      let last = select(context - i32(numRows) + i32(row - firstRow), context - 1, p.seesAll == 1u);
      place[0] = select(0, max(0, last - i32(p.window) + 1), p.window > 0u);
      place[1] = last;
      place[2] = i32(data[at + 3u]);
      place[3] = 1;
    }
  }
  workgroupBarrier();
}

fn loadQuery(row: u32, head: u32, tid: u32) {
  for (var d = tid; d < ${headDim}u; d += ${WORKGROUP}u) { query[d] = ${heads((h) => `num(p.q + (row * p.numHeads + head + ${h}u) * ${headDim}u + d)`)}; }
  workgroupBarrier();
}

fn visitChunk(chunk: u32, head: u32, tid: u32) -> Part {
  let kvHead = head / (p.numHeads / p.numKvHeads);
  let start = i32(chunk * ${CHUNK_TOKENS}u);
  let first = place[0];
  let last = place[1];
  if (tid < ${CHUNK_TOKENS / 16}u && start + i32(tid) * 16 <= last) {
    entries[tid] = i32(data[p.tables + u32(place[2]) + chunk * ${CHUNK_TOKENS / 16}u + tid]);
  }
  workgroupBarrier();
  let token = start + i32(tid);
  let isSeen = token >= first && token <= last;
  var score = ${type}(-3.0e38);
  if (isSeen) {
    let entry = entries[tid >> 4u];
    var dot = ${type}(0.0);
    for (var d = 0u; d < ${headDim}u; d += ${unrolled}u) {
      ${unroll(unrolled, (j) => `let k${j} = ${read('key', `kvHead, d + ${j}u, tid & 15u`)};`)}
      ${unroll(unrolled, (j) => `dot = fma(query[d + ${j}u], ${type}(k${j}), dot);`)}
    }
    score = dot * p.scaleF;
    if (p.softcapF > 0.0) { score = p.softcapF * ${heads((h) => `tanhOf(${ofHead('score', h)} / p.softcapF)`)}; }
  }
  var part: Part;
  part.most = workgroupMax(score, tid);
  var chance = ${type}(0.0);
  if (isSeen) { chance = exp(score - part.most); }
  chances[tid] = chance;
  part.total = workgroupTotal(chance, tid);
  // Groups of lanes take turns, so that they are equally busy in a short context.
  let group = i32(tid / ${lanes}u);
  let earliest = max(first, start);
  let latest = min(last, start + ${CHUNK_TOKENS - 1});
  let source = earliest + ((group - earliest) & ${groups - 1});
  let to = latest - ((latest - group) & ${groups - 1});
  ${Array.from(
    { length: dims },
    (_, j) => `
  part.v${j} = ${type}(0.0);
  {
    let d = (tid % ${lanes}u) + ${j * WORKGROUP}u;
    var sum = ${type}(0.0);
    if (d < ${headDim}u) {
      // Beyond the last token it is read again, with no weight.
      for (var t = source; t <= to; t += ${VALUES_AT_ONCE * groups}) {
        ${unroll(
          VALUES_AT_ONCE,
          (i) => `var v${i} = 0.0;
        {
          let at = u32(min(t + ${i * groups}, to) - start);
          let entry = entries[at >> 4u];
          v${i} = ${read('value', 'kvHead, d, at & 15u')};
        }`,
        )}
        ${unroll(VALUES_AT_ONCE, (i) => `sum = fma(select(${type}(0.0), chances[u32(min(t + ${i * groups}, to) - start)], t + ${i * groups} <= to), ${type}(v${i}), sum);`)}
      }
    }
    ${
      groups === 1
        ? `part.v${j} = sum;`
        : `workgroupBarrier();
    partials[tid] = sum;
    workgroupBarrier();
    if (tid < ${lanes}u) {
      for (var g = 0u; g < ${groups}u; g++) { part.v${j} += partials[tid + g * ${lanes}u]; }
    }`
    }
  }`,
  ).join('')}
  workgroupBarrier();
  return part;
}

/** exp of a difference; exactly 1 for equal scores, so that a chunk alone keeps its bits. */
fn share(score: ${type}, most: ${type}) -> ${type} { return select(exp(score - most), ${type}(1.0), score == most); }
fn addChunk(a: Part, b: Part) -> Part {
  var sum: Part;
  sum.most = max(a.most, b.most);
  let left = share(a.most, sum.most);
  let right = share(b.most, sum.most);
  sum.total = fma(b.total, right, a.total * left);
  ${Array.from({ length: dims }, (_, j) => `sum.v${j} = fma(b.v${j}, right, a.v${j} * left);`).join(' ')}
  return sum;
}
fn finishRow(row: u32, head: u32, tid: u32, part: Part) {
  var total = part.total;
  var factor = ${type}(1.0);
  if (p.hasSinks == 1u) {
    let sink = ${heads((h) => `num(p.sinks + head + ${h}u)`)};
    let most = max(part.most, sink);
    factor = share(part.most, most);
    total = fma(total, factor, exp(sink - most));
  }
  let at = p.out + (row * p.numHeads + head) * ${headDim}u;
  ${Array.from(
    { length: dims },
    (_, j) =>
      `if (tid < ${lanes}u && tid + ${j * WORKGROUP}u < ${headDim}u) {
    let value = part.v${j} * factor / total;
    ${unroll(numTogether, (h) => `put(at + ${h * headDim}u + tid + ${j * WORKGROUP}u, ${ofHead('value', h)});`)}
  }`,
  ).join('\n  ')}
}`;
}

const nameOf = ({ headDim, precision, packed, numTogether }: AttentionShape): string =>
  `${headDim} ${precision} ${packed ?? ''} ${numTogether}`;

/** One workgroup visits all chunks of a row and its heads. */
export const attentionRows = (shape: AttentionShape): KernelSource => ({
  name: `attention rows ${nameOf(shape)}`,
  params: ATTENTION_PARAMS,
  code:
    sharedCode(shape) +
    main(`
  let row = wid.x;
  let head = wid.y * ${shape.numTogether}u;
  findRow(row, tid);
  let bounds = workgroupUniformLoad(&place);
  if (bounds[3] == 0) { return; }
  loadQuery(row, head, tid);
  let firstChunk = u32(bounds[0]) / ${CHUNK_TOKENS}u;
  let lastChunk = u32(bounds[1]) / ${CHUNK_TOKENS}u;
  var part = visitChunk(firstChunk, head, tid);
  for (var chunk = firstChunk + 1u; chunk <= lastChunk; chunk++) { part = addChunk(part, visitChunk(chunk, head, tid)); }
  finishRow(row, head, tid, part);`),
});

const partWords = (headDim: number): number => 2 + headDim;

/** Floats of a chunk's results in scratch, as vec4. */
export const partVectors = (headDim: number): number => Math.ceil(partWords(headDim) / 4);

/** One workgroup per chunk of a row and head, with `numTogether` 1; `attentionMerge` adds them up. */
export const attentionChunks = (shape: AttentionShape): KernelSource => ({
  name: `attention chunks ${nameOf(shape)}`,
  params: ATTENTION_PARAMS,
  code:
    sharedCode(shape) +
    `var<workgroup> result: array<f32, ${partVectors(shape.headDim) * 4}>;` +
    main(`
  let row = wid.x;
  let head = wid.y;
  let chunk = wid.z;
  findRow(row, tid);
  let bounds = workgroupUniformLoad(&place);
  if (bounds[3] == 0 || chunk < u32(bounds[0]) / ${CHUNK_TOKENS}u || chunk > u32(bounds[1]) / ${CHUNK_TOKENS}u) { return; }
  loadQuery(row, head, tid);
  let part = visitChunk(chunk, head, tid);
  if (tid == 0u) { result[0] = part.most; result[1] = part.total; }
  ${Array.from(
    { length: Math.ceil(shape.headDim / WORKGROUP) },
    (_, j) =>
      `if (tid < ${Math.min(WORKGROUP, nextPowerOfTwo(shape.headDim))}u && tid + ${j * WORKGROUP}u < ${shape.headDim}u) { result[2u + tid + ${j * WORKGROUP}u] = part.v${j}; }`,
  ).join('\n  ')}
  workgroupBarrier();
  let at = p.parts + ((row * p.numHeads + head) * p.numParts + chunk) * ${partVectors(shape.headDim)}u;
  for (var i = tid; i < ${partVectors(shape.headDim)}u; i += ${WORKGROUP}u) {
    scratch[at + i] = bitcast<vec4<u32>>(vec4<f32>(result[4u * i], result[4u * i + 1u], result[4u * i + 2u], result[4u * i + 3u]));
  }`),
});

export const attentionMerge = (shape: AttentionShape): KernelSource => ({
  name: `attention merge ${nameOf(shape)}`,
  params: ATTENTION_PARAMS,
  code:
    sharedCode(shape) +
    `
fn partNumber(at: u32, i: u32) -> f32 { return bitcast<f32>(scratch[at + (i >> 2u)][i & 3u]); }
fn readPart(row: u32, head: u32, chunk: u32, tid: u32) -> Part {
  let at = p.parts + ((row * p.numHeads + head) * p.numParts + chunk) * ${partVectors(shape.headDim)}u;
  var part: Part;
  part.most = partNumber(at, 0u);
  part.total = partNumber(at, 1u);
  ${Array.from(
    { length: Math.ceil(shape.headDim / WORKGROUP) },
    (_, j) =>
      `if (tid + ${j * WORKGROUP}u < ${shape.headDim}u) { part.v${j} = partNumber(at, 2u + tid + ${j * WORKGROUP}u); }`,
  ).join('\n  ')}
  return part;
}` +
    main(`
  let row = wid.x;
  let head = wid.y;
  findRow(row, tid);
  let bounds = workgroupUniformLoad(&place);
  if (bounds[3] == 0) { return; }
  let firstChunk = u32(bounds[0]) / ${CHUNK_TOKENS}u;
  let lastChunk = u32(bounds[1]) / ${CHUNK_TOKENS}u;
  var part = readPart(row, head, firstChunk, tid);
  for (var chunk = firstChunk + 1u; chunk <= lastChunk; chunk++) { part = addChunk(part, readPart(row, head, chunk, tid)); }
  finishRow(row, head, tid, part);`),
});
