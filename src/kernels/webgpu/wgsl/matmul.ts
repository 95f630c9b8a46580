import { ACTIVATIONS, EXACT_MATH, type KernelSource, main } from './common.ts';
import { type FloatLayout, type IntegerLayout, quantsOf, type WeightLayout } from './layouts.ts';

/** Outputs of one dispatch of `vectorKernel`. */
export const MAX_OUTPUTS = 3;
/** Lanes that share a row; block b belongs to lane b % LANES in every kernel. */
export const LANES = 32;
const LANE_GROUPS = 8;

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const unroll = (count: number, line: (i: number) => string): string => range(count).map(line).join('\n');

const OUTPUT_PARAMS = range(MAX_OUTPUTS).flatMap((i) => [
  `weight${i}`,
  `rows${i}`,
  `allRows${i}`,
  `out${i}`,
  `bias${i}`,
  `flags${i}`,
]);

/** Parameters of a product, in the order that `products.ts` writes: words of an output are weight, rows, rows of the whole matrix, out, bias, flags. */
const PRODUCT_PARAMS = ['numTokens', 'blocks', 'x', 'gate', ...OUTPUT_PARAMS];

/** Flags of an output. */
export const HAS_BIAS = 1;
export const ACCUMULATES = 2;

/**
 * Sums over lanes by exchanging halves: (l, l ^ 16), then 8, 4, 2, 1. The tile kernel adds the lanes' sums in the same
 * tree, so a token has the same bits in every batch.
 */
const combine = (count: number, hasSubgroups: boolean): string =>
  hasSubgroups
    ? unroll(count, (i) => [16, 8, 4, 2, 1].map((d) => `sum${i} += subgroupShuffleXor(sum${i}, ${d}u);`).join(' '))
    : unroll(
        count,
        (i) => `
  workgroupBarrier();
  lanes[tid] = sum${i};
  workgroupBarrier();
  for (var d = 16u; d > 0u; d >>= 1u) {
    let other = lanes[tid ^ d];
    workgroupBarrier();
    lanes[tid] += other;
    workgroupBarrier();
  }
  sum${i} = lanes[tid];`,
      );

const integerBlock = (layout: IntegerLayout, numRows: number, numTokens: number): string => `
    ${unroll(
      numRows,
      (r) => `
    let q${r} = ${quantsOf(layout, `quantsAt${r} + b * ${layout.quantVectors}u`, `infoAt${r}`, `first${r} + b`)};
    let w${r} = info(infoAt${r}, first${r} + b);`,
    )}
    ${unroll(
      numTokens,
      (t) => `{
      let at = p.x + (min(${t}u + firstToken, p.numTokens - 1u) * p.blocks + b) * 3u;
      let xa = scratch[at];
      let xb = scratch[at + 1u];
      let xi = scratch[at + 2u];
      ${unroll(
        numRows,
        (r) => `{
        let i0 = dot4I8Packed(q${r}[0].x, xa.x) + dot4I8Packed(q${r}[0].y, xa.y) + dot4I8Packed(q${r}[0].z, xa.z) + dot4I8Packed(q${r}[0].w, xa.w);
        let i1 = dot4I8Packed(q${r}[1].x, xb.x) + dot4I8Packed(q${r}[1].y, xb.y) + dot4I8Packed(q${r}[1].z, xb.z) + dot4I8Packed(q${r}[1].w, xb.w);
        sum${r * numTokens + t} = accumulate(sum${r * numTokens + t}, i0, i1, w${r}, xi);
      }`,
      )}
    }`,
    )}`;

const floatBlock = (layout: FloatLayout, numRows: number, numTokens: number): string => `
    for (var i = 0u; i < 8u; i++) {
      ${unroll(numRows, (r) => `let w${r} = four(quantsAt${r} + b * ${layout.quantVectors}u, i);`)}
      ${unroll(
        numTokens,
        (t) => `{
        let x = bitcast<vec4<f32>>(scratch[p.x + (min(${t}u + firstToken, p.numTokens - 1u) * p.blocks + b) * 8u + i]);
        ${unroll(numRows, (r) => ['x', 'y', 'z', 'w'].map((c) => `sum${r * numTokens + t} = fma(w${r}.${c}, x.${c}, sum${r * numTokens + t});`).join(' '))}
      }`,
      )}
    }`;

const finish = (sum: string, token: string, row: string): string => `{
      var value = ${sum};
      if ((flags & ${HAS_BIAS}u) != 0u) { value += num(bias + ${row}); }
      let at = out + ${token} * allRows + ${row};
      if ((flags & ${ACCUMULATES}u) != 0u) { value = num(at) + value; }
      put(at, value);
    }`;

/** The output that a workgroup computes, and its place among the workgroups of that output. */
const chooseOutput = (unit: string, perUnit: number): string => `
  var index = ${unit};
  var chosen = 0u;
  var weight = p.weight0; var rows = p.rows0; var allRows = p.allRows0; var out = p.out0; var bias = p.bias0; var flags = p.flags0;
  ${unroll(
    MAX_OUTPUTS - 1,
    (i) => `{
    let units = (p.rows${i} + ${perUnit - 1}u) / ${perUnit}u;
    if (chosen == ${i}u && index >= units && p.rows${i + 1} > 0u) {
      chosen = ${i + 1}u;
      index -= units;
      weight = p.weight${i + 1}; rows = p.rows${i + 1}; allRows = p.allRows${i + 1}; out = p.out${i + 1}; bias = p.bias${i + 1}; flags = p.flags${i + 1};
    }
  }`,
  )}`;

export interface VectorShape {
  readonly numTokens: 1 | 2 | 4 | 8;
  /** Rows of a group of lanes. */
  readonly numRows: number;
  /** The second output is the `up` matrix of a gate. */
  readonly isGated: boolean;
  readonly hasSubgroups: boolean;
}

/** Rows of one workgroup of `vectorKernel`. */
export const vectorRows = ({ numRows, isGated }: Pick<VectorShape, 'numRows' | 'isGated'>): number =>
  LANE_GROUPS * (isGated ? numRows / 2 : numRows);

/** Products of few tokens: each group of 32 lanes computes some rows for all of them. */
export function vectorKernel(layout: WeightLayout, shape: VectorShape): KernelSource {
  const { numTokens, numRows, isGated, hasSubgroups } = shape;
  const perGroup = isGated ? numRows / 2 : numRows;
  const sums = numRows * numTokens;
  // The rows of a gate and of its `up` alternate.
  const rowOf = (r: number): string => `min(firstRow + ${isGated ? r >> 1 : r}u, rows - 1u)`;
  const weightOf = (r: number): string => (isGated && r % 2 === 1 ? 'p.weight1' : 'weight');
  const block =
    layout.kind === 'integer' ? integerBlock(layout, numRows, numTokens) : floatBlock(layout, numRows, numTokens);
  const results = isGated
    ? unroll(perGroup * numTokens, (i) => {
        const [r, t] = [Math.floor(i / numTokens), i % numTokens];
        const [gate, up] = [2 * r * numTokens + t, (2 * r + 1) * numTokens + t];
        return `
    if (lane == ${i % LANES}u && ${t}u + firstToken < p.numTokens && firstRow + ${r}u < rows) {
      var gate = sum${gate};
      var up = sum${up};
      if ((flags & ${HAS_BIAS}u) != 0u) { gate += num(bias + firstRow + ${r}u); }
      if ((p.flags1 & ${HAS_BIAS}u) != 0u) { up += num(p.bias1 + firstRow + ${r}u); }
      put(out + (${t}u + firstToken) * allRows + firstRow + ${r}u, gated(p.gate, gate, up));
    }`;
      })
    : unroll(sums, (i) => {
        const [r, t] = [Math.floor(i / numTokens), i % numTokens];
        return `
    if (lane == ${i % LANES}u && ${t}u + firstToken < p.numTokens && firstRow + ${r}u < rows) ${finish(`sum${i}`, `(${t}u + firstToken)`, `(firstRow + ${r}u)`)}`;
      });
  return {
    name: `vector ${layout.name} ${numTokens}x${numRows}${isGated ? ' gated' : ''}`,
    params: PRODUCT_PARAMS,
    needsSubgroups: hasSubgroups,
    code:
      EXACT_MATH +
      ACTIVATIONS +
      layout.code +
      (hasSubgroups ? '' : '\nvar<workgroup> lanes: array<f32, 256>;') +
      main(`
  let lane = tid & 31u;
  let firstToken = wid.y * ${numTokens}u;
  ${isGated ? 'var index = wid.x; let weight = p.weight0; let rows = p.rows0; let allRows = p.allRows0; let out = p.out0; let bias = p.bias0; let flags = p.flags0;' : chooseOutput('wid.x', LANE_GROUPS * perGroup)}
  let firstRow = (index * ${LANE_GROUPS}u + (tid >> 5u)) * ${perGroup}u;
  ${unroll(
    numRows,
    (r) => `
  let first${r} = ${rowOf(r)} * p.blocks;
  let quantsAt${r} = ${weightOf(r)} + first${r} * ${layout.quantVectors}u;
  let infoAt${r} = ${weightOf(r)} + rows * p.blocks * ${layout.quantVectors}u;`,
  )}
  ${unroll(sums, (i) => `var sum${i} = 0.0;`)}
  for (var b = lane; b < p.blocks; b += ${LANES}u) {
    ${block}
  }
  ${combine(sums, hasSubgroups)}
  ${results}`),
  };
}

/** Rows of a tile, and threads along each side. */
export const TILE_ROWS = 64;
const SIDE = 16;
const ROWS_PER_THREAD = TILE_ROWS / SIDE;

/** Lanes in the order in which their sums form the tree of `combine`. */
const LANE_ORDER = range(LANES).map((i) =>
  [0, 1, 2, 3, 4].reduce((reversed, bit) => reversed | (((i >> bit) & 1) << (4 - bit)), 0),
);

/** Products of many tokens: a tile of rows and tokens per workgroup, lane by lane. */
export function tileKernel(layout: WeightLayout, tokensPerThread: 1 | 2 | 4): KernelSource {
  const tokens = SIDE * tokensPerThread;
  const cells = range(ROWS_PER_THREAD).flatMap((r) => range(tokensPerThread).map((t) => ({ r, t, id: `${r}_${t}` })));
  const each = (line: (cell: (typeof cells)[number]) => string): string => cells.map(line).join('\n');
  const inner =
    layout.kind === 'integer' ? integerTile(layout, tokensPerThread, each) : floatTile(layout, tokensPerThread, each);
  return {
    name: `tile ${layout.name} ${tokens}`,
    params: PRODUCT_PARAMS,
    code:
      EXACT_MATH +
      layout.code +
      `
const laneOrder = array<u32, ${LANES}>(${LANE_ORDER.map((lane) => `${lane}u`).join(', ')});
${inner.declarations}` +
      main(`
  ${chooseOutput('wid.x', TILE_ROWS)}
  let firstRow = index * ${TILE_ROWS}u;
  let firstToken = wid.y * ${tokens}u;
  let row = tid % ${SIDE}u;
  let column = tid / ${SIDE}u;
  let infoAt = weight + rows * p.blocks * ${layout.quantVectors}u;
  ${each(
    ({ id }) =>
      `var sum${id} = 0.0; ${range(5)
        .map((level) => `var tree${level}_${id} = 0.0;`)
        .join(' ')}`,
  )}
  for (var i = 0u; i < ${LANES}u; i++) {
    let lane = laneOrder[i];
    ${each(({ id }) => `sum${id} = 0.0;`)}
    for (var first = lane; first < p.blocks; first += ${LANES * inner.blocksPerStage}u) {
      ${inner.stage}
    }
    ${each(
      ({ id }) => `{
      var part = sum${id};
      if ((i & 1u) == 0u) { tree0_${id} = part; } else { part = tree0_${id} + part;
      if ((i & 2u) == 0u) { tree1_${id} = part; } else { part = tree1_${id} + part;
      if ((i & 4u) == 0u) { tree2_${id} = part; } else { part = tree2_${id} + part;
      if ((i & 8u) == 0u) { tree3_${id} = part; } else { part = tree3_${id} + part;
      if ((i & 16u) == 0u) { tree4_${id} = part; } else { sum${id} = tree4_${id} + part; }}}}}
    }`,
    )}
  }
  ${each(
    ({ r, t, id }) => `
  if (firstRow + row * ${ROWS_PER_THREAD}u + ${r}u < rows && firstToken + column * ${tokensPerThread}u + ${t}u < p.numTokens)
    ${finish(`sum${id}`, `(firstToken + column * ${tokensPerThread}u + ${t}u)`, `(firstRow + row * ${ROWS_PER_THREAD}u + ${r}u)`)}`,
  )}`),
  };
}

interface TileCode {
  readonly declarations: string;
  readonly blocksPerStage: number;
  readonly stage: string;
}

type Each = (line: (cell: { r: number; t: number; id: string }) => string) => string;

function integerTile(layout: IntegerLayout, tokensPerThread: number, each: Each): TileCode {
  const stageBlocks = 2;
  const tokens = SIDE * tokensPerThread;
  return {
    blocksPerStage: stageBlocks,
    // Words of a block are apart, so that the rows of a thread are neighbours.
    declarations: `
var<workgroup> tileW: array<u32, ${stageBlocks * 8 * TILE_ROWS}>;
var<workgroup> tileX: array<u32, ${stageBlocks * 8 * tokens}>;
var<workgroup> infoW: array<vec4<f32>, ${stageBlocks * TILE_ROWS}>;
var<workgroup> infoX: array<vec4<u32>, ${stageBlocks * tokens}>;`,
    stage: `
      workgroupBarrier();
      for (var task = tid; task < ${stageBlocks * (TILE_ROWS + tokens)}u; task += 256u) {
        if (task < ${stageBlocks * TILE_ROWS}u) {
          let e = task / ${TILE_ROWS}u;
          let r = task % ${TILE_ROWS}u;
          let b = first + e * ${LANES}u;
          if (b < p.blocks) {
            let at = min(firstRow + r, rows - 1u) * p.blocks + b;
            let q = ${quantsOf(layout, `weight + at * ${layout.quantVectors}u`, 'infoAt', 'at')};
            infoW[task] = info(infoAt, at);
            for (var w = 0u; w < 4u; w++) {
              tileW[(e * 8u + w) * ${TILE_ROWS}u + r] = q[0][w];
              tileW[(e * 8u + w + 4u) * ${TILE_ROWS}u + r] = q[1][w];
            }
          }
        } else {
          let rest = task - ${stageBlocks * TILE_ROWS}u;
          let e = rest / ${tokens}u;
          let t = rest % ${tokens}u;
          let b = first + e * ${LANES}u;
          if (b < p.blocks) {
            let at = p.x + (min(firstToken + t, p.numTokens - 1u) * p.blocks + b) * 3u;
            let xa = scratch[at];
            let xb = scratch[at + 1u];
            infoX[rest] = scratch[at + 2u];
            for (var w = 0u; w < 4u; w++) {
              tileX[(e * 8u + w) * ${tokens}u + t] = xa[w];
              tileX[(e * 8u + w + 4u) * ${tokens}u + t] = xb[w];
            }
          }
        }
      }
      workgroupBarrier();
      for (var e = 0u; e < ${stageBlocks}u && first + e * ${LANES}u < p.blocks; e++) {
        ${each(({ id }) => `var low${id} = 0; var high${id} = 0;`)}
        ${['low', 'high']
          .map(
            (half, h) => `
        for (var w = ${4 * h}u; w < ${4 * h + 4}u; w++) {
          ${unroll(ROWS_PER_THREAD, (r) => `let a${r} = tileW[(e * 8u + w) * ${TILE_ROWS}u + row * ${ROWS_PER_THREAD}u + ${r}u];`)}
          ${unroll(tokensPerThread, (t) => `let x${t} = tileX[(e * 8u + w) * ${tokens}u + column * ${tokensPerThread}u + ${t}u];`)}
          ${each(({ r, t, id }) => `${half}${id} += dot4I8Packed(a${r}, x${t});`)}
        }`,
          )
          .join('\n')}
        ${unroll(ROWS_PER_THREAD, (r) => `let w${r} = infoW[e * ${TILE_ROWS}u + row * ${ROWS_PER_THREAD}u + ${r}u];`)}
        ${unroll(tokensPerThread, (t) => `let i${t} = infoX[e * ${tokens}u + column * ${tokensPerThread}u + ${t}u];`)}
        ${each(({ r, t, id }) => `sum${id} = accumulate(sum${id}, low${id}, high${id}, w${r}, i${t});`)}
      }`,
  };
}

function floatTile(layout: FloatLayout, tokensPerThread: number, each: Each): TileCode {
  const tokens = SIDE * tokensPerThread;
  return {
    blocksPerStage: 1,
    declarations: `
var<workgroup> tileW: array<f32, ${16 * TILE_ROWS}>;
var<workgroup> tileX: array<f32, ${16 * tokens}>;`,
    // Half a block at a time: a whole one would not fit the smallest workgroup memory.
    stage: `
      for (var part = 0u; part < 2u; part++) {
        workgroupBarrier();
        for (var task = tid; task < ${4 * TILE_ROWS}u; task += 256u) {
          let r = task % ${TILE_ROWS}u;
          let i = task / ${TILE_ROWS}u;
          let at = weight + (min(firstRow + r, rows - 1u) * p.blocks + first) * ${layout.quantVectors}u;
          let v = four(at, part * 4u + i);
          for (var c = 0u; c < 4u; c++) { tileW[(i * 4u + c) * ${TILE_ROWS}u + r] = v[c]; }
        }
        for (var task = tid; task < ${4 * tokens}u; task += 256u) {
          let t = task % ${tokens}u;
          let i = task / ${tokens}u;
          let v = bitcast<vec4<f32>>(scratch[p.x + (min(firstToken + t, p.numTokens - 1u) * p.blocks + first) * 8u + part * 4u + i]);
          for (var c = 0u; c < 4u; c++) { tileX[(i * 4u + c) * ${tokens}u + t] = v[c]; }
        }
        workgroupBarrier();
        for (var k = 0u; k < 16u; k++) {
          ${unroll(ROWS_PER_THREAD, (r) => `let a${r} = tileW[k * ${TILE_ROWS}u + row * ${ROWS_PER_THREAD}u + ${r}u];`)}
          ${unroll(tokensPerThread, (t) => `let x${t} = tileX[k * ${tokens}u + column * ${tokensPerThread}u + ${t}u];`)}
          ${each(({ r, t, id }) => `sum${id} = fma(a${r}, x${t}, sum${id});`)}
        }
      }`,
  };
}

/** out[i] = table[ids[i]] * scale: one thread per block of a row. */
export function gatherKernel(layout: WeightLayout): KernelSource {
  const body =
    layout.kind === 'integer'
      ? `
      let q = ${quantsOf(layout, `p.weight + at * ${layout.quantVectors}u`, 'infoAt', 'at')};
      let w = info(infoAt, at);
      for (var i = 0u; i < 32u; i++) {
        let level = i32(q[i >> 4u][(i >> 2u) & 3u] << (24u - 8u * (i & 3u))) >> 24u;
        put(to + i, decode(level, i >> 4u, w) * p.scaleF);
      }`
      : `
      for (var i = 0u; i < 32u && b * 32u + i < p.numCols; i++) {
        put(to + i, four(p.weight + at * ${layout.quantVectors}u, i >> 2u)[i & 3u] * p.scaleF);
      }`;
  return {
    name: `gather ${layout.name}`,
    params: ['weight', 'allRows', 'firstRow', 'blocks', 'numCols', 'ids', 'out', 'numRows', 'scaleF'],
    code:
      layout.code +
      main(`
  let infoAt = p.weight + p.allRows * p.blocks * ${layout.quantVectors}u;
  for (var n = wid.x * 256u + tid; n < p.numRows * p.blocks; n += nwg.x * 256u) {
    let index = n / p.blocks;
    let b = n - index * p.blocks;
    let row = data[p.ids + index] - p.firstRow;
    // Rows of other parts of the matrix wrap around or lie beyond this one.
    if (row < p.allRows) {
      let at = row * p.blocks + b;
      let to = p.out + index * p.numCols + b * 32u;
      ${body}
    }
  }`),
  };
}
