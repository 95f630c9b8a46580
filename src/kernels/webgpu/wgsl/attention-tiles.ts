import type { KvPrecision } from '../../contract.ts';
import { ATTENTION_PARAMS, type AttentionShape, BYTES, CHUNK_TOKENS, READERS } from './attention.ts';
import { ACTIVATIONS, EXACT_MATH, type KernelSource, main, range, unroll, WORKGROUP } from './common.ts';

/** Attention of many rows: a workgroup visits chunks with some consecutive rows of a sequence and some of their heads. */
export interface TileShape extends Pick<
  AttentionShape,
  'headDim' | 'precision' | 'packed' | 'numTogether' | 'hasSubgroups'
> {
  /** Rows times heads of a workgroup. */
  readonly numQueries: 16 | 32;
}

/** Larger heads have more than one value per thread of the other kernels, whose order of sums must be kept. */
export const MAX_TILE_HEAD_DIM = WORKGROUP;

const QUERY_GROUPS = 4;
const TOKENS_PER_THREAD = 4;
const VALUES_AT_ONCE = 4;
const KEYS_AT_ONCE = 4;

/** Vectors between the weights of two tokens: one more than needed, so that neighbours are in different banks. */
const strideOf = (numQueries: number): number => numQueries / 4 + 1;

/** Bytes of workgroup memory. */
export const tileBytes = ({
  headDim,
  numQueries,
  hasSubgroups,
}: Pick<TileShape, 'headDim' | 'numQueries' | 'hasSubgroups'>): number =>
  4 * headDim * numQueries +
  16 * CHUNK_TOKENS * strideOf(numQueries) +
  8 * numQueries +
  4 * (CHUNK_TOKENS / 16) +
  16 +
  (hasSubgroups ? 0 : 16 * WORKGROUP);

/** `exchanged`: a vector of the thread whose number differs in bit `d`. All threads must call it. */
const exchange = (hasSubgroups: boolean): string =>
  hasSubgroups
    ? `
fn exchanged(value: vec4<f32>, d: u32, tid: u32) -> vec4<f32> { return subgroupShuffleXor(value, d); }`
    : `
var<workgroup> offered: array<vec4<f32>, ${WORKGROUP}>;
fn exchanged(value: vec4<f32>, d: u32, tid: u32) -> vec4<f32> {
  workgroupBarrier();
  offered[tid] = value;
  workgroupBarrier();
  return offered[tid ^ d];
}`;

/** The sum of 256 weights, eight in each of 32 threads, in the order of `reduction` with subgroups: those of 32 tokens first. */
const SUM_BY_SUBGROUPS = `
  // Sums of 32 tokens; lanes share the eight sums, so that fewer numbers are exchanged.
  let has16 = vec4<bool>((lane & 16u) != 0u); let has8 = vec4<bool>((lane & 8u) != 0u); let has4 = vec4<bool>((lane & 4u) != 0u);
  ${unroll(4, (j) => `let a${j} = select(w${j}, w${j + 4}, has16) + exchanged(select(w${j + 4}, w${j}, has16), 16u, tid);`)}
  ${unroll(2, (j) => `let b${j} = select(a${j}, a${j + 2}, has8) + exchanged(select(a${j + 2}, a${j}, has8), 8u, tid);`)}
  var sum = select(b0, b1, has4) + exchanged(select(b1, b0, has4), 4u, tid);
  sum += exchanged(sum, 2u, tid);
  sum += exchanged(sum, 1u, tid);
  // Then those of all: neighbours first.
  sum += exchanged(sum, 4u, tid);
  sum += exchanged(sum, 8u, tid);
  sum += exchanged(sum, 16u, tid);`;

/** And in its order without subgroups: halves of all, then halves of those. */
const SUM_BY_HALVES = `
  var sum = ((w0 + w4) + (w2 + w6)) + ((w1 + w5) + (w3 + w7));
  ${[16, 8, 4, 2, 1].map((d) => `sum += exchanged(sum, ${d}u, tid);`).join(' ')}`;

/** Keys of four slots from a multiple of four, and four values from such a dimension. */
const FOURS: Readonly<Record<KvPrecision, (headDim: number, suffix: string) => string>> = {
  f16: (headDim, suffix) => `
fn keys${suffix}(page: u32, head: u32, d: u32, slot: u32) -> vec4<f32> {
  let at = page + (((head * ${headDim}u + d) * 16u + slot) >> 1u);
  return vec4<f32>(unpack2x16float(data[at]), unpack2x16float(data[at + 1u]));
}
fn values${suffix}(page: u32, head: u32, d: u32, slot: u32) -> vec4<f32> {
  let at = page + ((((p.numKvHeads + head) * 16u + slot) * ${headDim}u + d) >> 1u);
  return vec4<f32>(unpack2x16float(data[at]), unpack2x16float(data[at + 1u]));
}`,
  f32: singly,
  q8: singly,
  q4: singly,
};

function singly(_: number, suffix: string): string {
  const four = (of: (i: number) => string): string => `return vec4<f32>(${range(4).map(of).join(', ')});`;
  return `
fn keys${suffix}(page: u32, head: u32, d: u32, slot: u32) -> vec4<f32> { ${four((i) => `key${suffix}(page, head, d, slot + ${i}u)`)} }
fn values${suffix}(page: u32, head: u32, d: u32, slot: u32) -> vec4<f32> { ${four((i) => `value${suffix}(page, head, d + ${i}u, slot)`)} }`;
}

/**
 * The arithmetic of `attentionRows`, value for value: scores are sums over dimensions in order, weights are added as its
 * lanes are, and values of every n-th token are added in order before the n sums are.
 */
export function attentionTiles(shape: TileShape): KernelSource {
  const { headDim, precision, packed, numTogether, numQueries, hasSubgroups } = shape;
  const rowsPerTile = numQueries / numTogether;
  const vectors = numQueries / 4;
  /** Vectors of queries of a thread. */
  const own = vectors / QUERY_GROUPS;
  const stride = strideOf(numQueries);
  const lanes = Math.min(WORKGROUP, 2 ** Math.ceil(Math.log2(headDim)));
  const groups = WORKGROUP / lanes;
  /** Vectors of results of a thread; of short heads some threads have none. */
  const cells = Math.ceil((vectors * lanes) / WORKGROUP);
  const read = (what: 'keys' | 'values', args: string): string =>
    packed === null ? `${what}Plain(p.base + u32(entry) * p.pageWords, ${args})` : `read_${what}(entry, ${args})`;
  const either = (what: 'keys' | 'values'): string => `
fn read_${what}(entry: i32, head: u32, d: u32, slot: u32) -> vec4<f32> {
  if (entry < 0) { return ${what}Packed(p.packedBase + u32(~entry) * p.packedWords, head, d, slot); }
  return ${what}Plain(p.base + u32(entry) * p.pageWords, head, d, slot);
}`;
  const four = (line: (i: number) => string): string => `vec4<f32>(${range(4).map(line).join(', ')})`;
  /** Adds the values of a token, times its weights of a thread's queries. */
  const addToken = (i: number, isGuarded: boolean): string =>
    unroll(own, (v) => {
      const sums = (at: string): string =>
        unroll(4, (d) => {
          const sum = `fma(w${i}_${v}, vec4<f32>(v${i}[${d}]), acc${v}_${d})`;
          return isGuarded
            ? `acc${v}_${d} = select(acc${v}_${d}, ${sum}, seesToken(rows, queryGroup * ${own}u + ${v}u, ${at}));`
            : `acc${v}_${d} = ${sum};`;
        });
      return sums('t');
    });
  const loadToken = (i: number): string => `
        let at${i} = u32(t + ${i * groups} - start);
        var v${i} = vec4<f32>(0.0);
        { let entry = entries[at${i} >> 4u]; v${i} = ${read('values', 'kvHead, dim, at' + i + ' & 15u')}; }
        ${unroll(own, (v) => `let w${i}_${v} = chances[at${i} * ${stride}u + queryGroup * ${own}u + ${v}u];`)}`;
  return {
    name: `attention tiles ${headDim} ${precision} ${packed ?? ''} ${numTogether} of ${numQueries}`,
    params: ATTENTION_PARAMS,
    code: `${EXACT_MATH}${ACTIVATIONS}${BYTES}
${READERS[precision](headDim, 'Plain')}${FOURS[precision](headDim, 'Plain')}
${packed === null ? '' : READERS[packed](headDim, 'Packed') + FOURS[packed](headDim, 'Packed') + either('keys') + either('values')}
${exchange(hasSubgroups)}
/** Queries of four rows or heads in a vector. */
var<workgroup> query: array<vec4<f32>, ${headDim * vectors}>;
/** Scores, then weights, then sums of values. */
var<workgroup> chances: array<vec4<f32>, ${CHUNK_TOKENS * stride}>;
var<workgroup> mosts: array<vec4<f32>, ${vectors}>;
var<workgroup> totals: array<vec4<f32>, ${vectors}>;
var<workgroup> entries: array<i32, ${CHUNK_TOKENS / 16}>;
/** The last token that the first row sees, the page table, the number of rows, and the first row. */
var<workgroup> place: vec4<i32>;

fn numTilesOf(numRows: u32) -> u32 { return select(0u, (numRows + ${rowsPerTile - 1}u) / ${rowsPerTile}u, numRows >= p.tileRows); }

/** Workgroups count the tiles of all sequences in order. */
fn findRows(tile: u32, tid: u32) {
  if (tid == 0u) { place[2] = 0; }
  workgroupBarrier();
  for (var s = tid; s < p.numSequences; s += ${WORKGROUP}u) {
    var before = 0u;
    for (var each = 0u; each < s; each++) { before += numTilesOf(data[p.sequences + 4u * each + 1u]); }
    let at = p.sequences + 4u * s;
    let numRows = data[at + 1u];
    let row = (tile - before) * ${rowsPerTile}u;
    if (tile >= before && tile - before < numTilesOf(numRows)) {
      let context = i32(data[at + 2u]);
      place[0] = select(context - i32(numRows) + i32(row), context - 1, p.seesAll == 1u);
      place[1] = i32(data[at + 3u]);
      place[2] = i32(min(${rowsPerTile}u, numRows - row));
      place[3] = i32(data[at] + row);
    }
  }
  workgroupBarrier();
}

/** Rows of a vector of queries; rows that do not exist see what the last one sees. */
fn rowsOf(rows: vec4<i32>, vector: u32) -> vec4<i32> {
  let first = i32(vector * 4u);
  return min(vec4<i32>(first, first + 1, first + 2, first + 3) / vec4<i32>(${numTogether}), vec4<i32>(rows[2] - 1));
}
fn lastOf(rows: vec4<i32>, vector: u32) -> vec4<i32> {
  return vec4<i32>(rows[0]) + select(rowsOf(rows, vector), vec4<i32>(0), p.seesAll == 1u);
}
fn firstOf(rows: vec4<i32>, vector: u32) -> vec4<i32> {
  return select(vec4<i32>(0), max(vec4<i32>(0), lastOf(rows, vector) - vec4<i32>(i32(p.window) - 1)), p.window > 0u);
}
fn seesToken(rows: vec4<i32>, vector: u32, token: i32) -> vec4<bool> {
  return (vec4<i32>(token) >= firstOf(rows, vector)) & (vec4<i32>(token) <= lastOf(rows, vector));
}

/** exp of a difference; exactly 1 for equal scores, so that a chunk alone keeps its bits. */
fn share(score: vec4<f32>, most: vec4<f32>) -> vec4<f32> { return select(exp(score - most), vec4<f32>(1.0), score == most); }

fn scoreChunk(rows: vec4<i32>, start: i32, kvHead: u32, tid: u32) {
  let queryGroup = tid / ${WORKGROUP / QUERY_GROUPS}u;
  let at = (tid % ${WORKGROUP / QUERY_GROUPS}u) * ${TOKENS_PER_THREAD}u;
  let token = start + i32(at);
  let isSeen = token <= lastOf(rows, ${vectors - 1}u)[3] && token + ${TOKENS_PER_THREAD - 1} >= firstOf(rows, 0u)[0];
  ${unroll(own, (v) => unroll(TOKENS_PER_THREAD, (i) => `var dot${v}_${i} = vec4<f32>(0.0);`))}
  if (isSeen) {
    let entry = entries[at >> 4u];
    for (var d = 0u; d < ${headDim}u; d += ${KEYS_AT_ONCE}u) {
      ${unroll(KEYS_AT_ONCE, (j) => `let k${j} = ${read('keys', `kvHead, d + ${j}u, at & 15u`)};`)}
      ${unroll(KEYS_AT_ONCE, (j) =>
        unroll(
          own,
          (v) => `{
        let q = query[(d + ${j}u) * ${vectors}u + queryGroup * ${own}u + ${v}u];
        ${unroll(TOKENS_PER_THREAD, (i) => `dot${v}_${i} = fma(q, vec4<f32>(k${j}[${i}]), dot${v}_${i});`)}
      }`,
        ),
      )}
    }
  }
  ${unroll(own, (v) =>
    unroll(
      TOKENS_PER_THREAD,
      (i) => `{
    var score = dot${v}_${i} * p.scaleF;
    if (p.softcapF > 0.0) { score = p.softcapF * ${four((h) => `tanhOf(score[${h}] / p.softcapF)`)}; }
    chances[(at + ${i}u) * ${stride}u + queryGroup * ${own}u + ${v}u] =
      select(vec4<f32>(-3.0e38), score, seesToken(rows, queryGroup * ${own}u + ${v}u, token + ${i}));
  }`,
    ),
  )}
}

/** Weights of a chunk, their largest score and their sum: 32 threads have a vector of queries, each every 32nd token. */
fn weighChunk(rows: vec4<i32>, start: i32, tid: u32) {
  let lane = tid & 31u;
  // Threads without a vector compute the last one and keep nothing: all must take part in exchanges.
  let isOwn = (tid >> 5u) < ${vectors}u;
  let vector = min(tid >> 5u, ${vectors - 1}u);
  let first = firstOf(rows, vector);
  let last = lastOf(rows, vector);
  ${unroll(8, (j) => `var w${j} = chances[(${j * 32}u + lane) * ${stride}u + vector];`)}
  var most = ${range(8).reduce((text, j) => (j === 0 ? 'w0' : `max(${text}, w${j})`), '')};
  ${[16, 8, 4, 2, 1].map((d) => `most = max(most, exchanged(most, ${d}u, tid));`).join(' ')}
  ${unroll(
    8,
    (j) => `{
    let token = vec4<i32>(start + i32(${j * 32}u + lane));
    w${j} = select(vec4<f32>(0.0), exp(w${j} - most), (token >= first) & (token <= last));
    if (isOwn) { chances[(${j * 32}u + lane) * ${stride}u + vector] = w${j}; }
  }`,
  )}
  ${hasSubgroups ? SUM_BY_SUBGROUPS : SUM_BY_HALVES}
  if (isOwn && lane == 0u) { mosts[vector] = most; totals[vector] = sum; }
}

/** Sums of values of every ${groups}th token into \`chances\`. */
fn addChunk(rows: vec4<i32>, start: i32, kvHead: u32, tid: u32) {
  let group = i32(tid / ${lanes}u);
  let dim = (tid % ${lanes / 4}u) * 4u;
  let queryGroup = (tid % ${lanes}u) / ${lanes / 4}u;
  let earliest = max(firstOf(rows, 0u)[0], start);
  let latest = min(lastOf(rows, ${vectors - 1}u)[3], start + ${CHUNK_TOKENS - 1});
  let to = latest - ((latest - group) & ${groups - 1});
  // All rows see the tokens between these.
  let fullFrom = firstOf(rows, ${vectors - 1}u)[3];
  let fullTo = min(lastOf(rows, 0u)[0], to);
  ${unroll(own, (v) => unroll(4, (d) => `var acc${v}_${d} = vec4<f32>(0.0);`))}
  if (dim < ${headDim}u) {
    var t = earliest + ((group - earliest) & ${groups - 1});
    while (t <= to) {
      if (t >= fullFrom && t + ${(VALUES_AT_ONCE - 1) * groups} <= fullTo) {
        ${unroll(VALUES_AT_ONCE, loadToken)}
        ${unroll(VALUES_AT_ONCE, (i) => addToken(i, false))}
        t += ${VALUES_AT_ONCE * groups};
      } else {
        // A row must not meet values that it does not see: they may be infinite.
        ${loadToken(0)}
        ${addToken(0, true)}
        t += ${groups};
      }
    }
  }
  workgroupBarrier();
  ${unroll(own, (v) => unroll(4, (d) => `chances[(u32(group) * ${vectors}u + queryGroup * ${own}u + ${v}u) * ${lanes}u + dim + ${d}u] = acc${v}_${d};`))}
  workgroupBarrier();
}
${main(`
  let head = wid.y * ${numTogether}u;
  let kvHead = head / (p.numHeads / p.numKvHeads);
  // Rows with the longest context come first, so that short ones fill the gaps at the end.
  findRows(nwg.x - 1u - wid.x, tid);
  let rows = workgroupUniformLoad(&place);
  if (rows[2] == 0) { return; }
  for (var i = tid; i < ${headDim * vectors}u; i += ${WORKGROUP}u) {
    let vector = i / ${headDim}u;
    let d = i % ${headDim}u;
    let row = rowsOf(rows, vector);
    query[d * ${vectors}u + vector] = ${four((c) => `num(p.q + (u32(rows[3] + row[${c}]) * p.numHeads + head + (vector * 4u + ${c}u) % ${numTogether}u) * ${headDim}u + d)`)};
  }
  let firstChunk = firstOf(rows, 0u)[0] / ${CHUNK_TOKENS};
  let lastChunk = lastOf(rows, ${vectors - 1}u)[3] / ${CHUNK_TOKENS};
  ${unroll(cells, (c) => `var most${c} = vec4<f32>(0.0); var total${c} = vec4<f32>(0.0); var value${c} = vec4<f32>(0.0);`)}
  for (var chunk = firstChunk; chunk <= lastChunk; chunk++) {
    let start = chunk * ${CHUNK_TOKENS};
    workgroupBarrier();
    if (tid < ${CHUNK_TOKENS / 16}u && start + i32(tid) * 16 <= lastOf(rows, ${vectors - 1}u)[3]) {
      entries[tid] = i32(data[p.tables + u32(rows[1]) + u32(chunk) * ${CHUNK_TOKENS / 16}u + tid]);
    }
    workgroupBarrier();
    scoreChunk(rows, start, kvHead, tid);
    workgroupBarrier();
    weighChunk(rows, start, tid);
    workgroupBarrier();
    addChunk(rows, start, kvHead, tid);
    ${unroll(
      cells,
      (c) => `{
      let cell = tid + ${c * WORKGROUP}u;
      let vector = min(cell / ${lanes}u, ${vectors - 1}u);
      ${
        groups === 1
          ? 'let value = chances[cell];'
          : `var value = vec4<f32>(0.0);
      ${unroll(groups, (g) => `value += chances[cell + ${g * vectors * lanes}u];`)}`
      }
      let isSeen = vec4<i32>(chunk) <= lastOf(rows, vector) / vec4<i32>(${CHUNK_TOKENS});
      let isFirst = vec4<i32>(chunk) <= firstOf(rows, vector) / vec4<i32>(${CHUNK_TOKENS});
      let most = max(most${c}, mosts[vector]);
      let left = share(most${c}, most);
      let right = share(mosts[vector], most);
      let total = fma(totals[vector], right, total${c} * left);
      let sum = fma(value, right, value${c} * left);
      most${c} = select(most${c}, select(most, mosts[vector], isFirst), isSeen);
      total${c} = select(total${c}, select(total, totals[vector], isFirst), isSeen);
      value${c} = select(value${c}, select(sum, value, isFirst), isSeen);
    }`,
    )}
  }
  ${unroll(
    cells,
    (c) => `{
    let cell = tid + ${c * WORKGROUP}u;
    let vector = min(cell / ${lanes}u, ${vectors - 1}u);
    let d = cell % ${lanes}u;
    var factor = vec4<f32>(1.0);
    if (p.hasSinks == 1u) {
      let sink = ${four((h) => `num(p.sinks + head + (vector * 4u + ${h}u) % ${numTogether}u)`)};
      let most = max(most${c}, sink);
      factor = share(most${c}, most);
      total${c} = fma(total${c}, factor, exp(sink - most));
    }
    let value = value${c} * factor / total${c};
    if (d < ${headDim}u && cell < ${vectors * lanes}u) {
      ${unroll(
        4,
        (i) => `{
        let index = vector * 4u + ${i}u;
        let row = index / ${numTogether}u;
        if (row < u32(rows[2])) { put(p.out + ((u32(rows[3]) + row) * p.numHeads + head + index % ${numTogether}u) * ${headDim}u + d, value[${i}]); }
      }`,
      )}
    }
  }`,
  )}`)}`,
  };
}
