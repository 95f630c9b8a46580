import { ACTIVATIONS, EXACT_MATH, type KernelSource, main } from './common.ts';
import { type FloatLayout, type IntegerLayout, quantsOf, type WeightLayout } from './layouts.ts';
import { NORM_PARAMS, roundingBytes, roundingCode, roundRow, storeIntegers } from './prepare.ts';

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

/** Sums that are combined by exchanging registers; more go through the workgroup's memory, where each lane adds up one. */
const FEW_SUMS = 4;

/**
 * Adds up the lanes' sums in order, as the tile kernel does, so that a token has the same bits in every batch. Afterwards
 * the total of sum i is `total(i)` in lane i % LANES.
 */
function combine(count: number, hasSubgroups: boolean): { declarations: string; code: string } {
  if (hasSubgroups && count <= FEW_SUMS) {
    const add = (i: number): string => `
  var total${i} = subgroupShuffle(sum${i}, 0u);
  for (var l = 1u; l < ${LANES}u; l++) { total${i} += subgroupShuffle(sum${i}, l); }`;
    return { declarations: '', code: unroll(count, add) + unroll(count, (i) => `let result${i} = total${i};`) };
  }
  // Lane l of sum i is at l ^ i, so that lanes which read one sum each use different banks.
  return {
    declarations: `
var<workgroup> lanes: array<f32, ${LANE_GROUPS * LANES * Math.min(count, MEMORY_SUMS)}>;`,
    code: range(Math.ceil(count / MEMORY_SUMS))
      .map((part) => {
        const first = part * MEMORY_SUMS;
        const here = Math.min(MEMORY_SUMS, count - first);
        return `
  workgroupBarrier();
  ${unroll(here, (i) => `lanes[((tid >> 5u) * ${here}u + ${i}u) * ${LANES}u + (lane ^ ${i}u)] = sum${first + i};`)}
  workgroupBarrier();
  var total_${part} = 0.0;
  if (lane < ${here}u) {
    let at = ((tid >> 5u) * ${here}u + lane) * ${LANES}u;
    total_${part} = lanes[at + lane];
    for (var l = 1u; l < ${LANES}u; l++) { total_${part} += lanes[at + (l ^ lane)]; }
  }
  workgroupBarrier();
  lanes[tid] = total_${part};
  workgroupBarrier();
  ${unroll(here, (i) => `let result${first + i} = lanes[(tid & ~31u) + ${i}u];`)}`;
      })
      .join(''),
  };
}
/** Sums of a group of lanes that fit into the workgroup's memory at once. */
const MEMORY_SUMS = 8;

/** A token's rounded block: in scratch, or in the workgroup's memory if it has rounded the only token itself. */
const integerInput = (token: number, isOwn: boolean): string =>
  isOwn
    ? `let xa = input[b * 3u]; let xb = input[b * 3u + 1u]; let xi = input[b * 3u + 2u];`
    : `let at = p.x + (min(${token}u + firstToken, p.numTokens - 1u) * p.blocks + b) * 3u;
      let xa = scratch[at]; let xb = scratch[at + 1u]; let xi = scratch[at + 2u];`;

/** The sum of a block's second half. */
const secondHalf = ({ hasHalves }: IntegerLayout): string => (hasHalves ? 'y' : 'x');

const integerBlock = (layout: IntegerLayout, numRows: number, numTokens: number, isOwn: boolean): string => `
    ${unroll(
      numRows,
      (r) => `
    let q${r} = ${quantsOf(layout, `quantsAt${r} + b * ${layout.quantVectors}u`, `infoAt${r}`, `first${r} + b`)};
    let w${r} = info(infoAt${r}, first${r} + b);`,
    )}
    ${unroll(
      numTokens,
      (t) => `{
      ${integerInput(t, isOwn)}
      ${unroll(
        numRows,
        (r) => `{
        var dot = begin(xi);
        ${['x', 'y', 'z', 'w'].map((c) => `dot.x += dot4I8Packed(q${r}[0].${c}, xa.${c});`).join(' ')}
        ${['x', 'y', 'z', 'w'].map((c) => `dot.${secondHalf(layout)} += dot4I8Packed(q${r}[1].${c}, xb.${c});`).join(' ')}
        sum${r * numTokens + t} = accumulate(sum${r * numTokens + t}, dot, w${r}, xi);
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

/** The gate's output, the only one that is written. */
const FIRST_OUTPUT = (unit: string): string =>
  `let index = ${unit}; let weight = p.weight0; let rows = p.rows0; let allRows = p.allRows0; let out = p.out0; let bias = p.bias0; let flags = p.flags0;`;

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
  /** Every workgroup rounds the only token itself, instead of a dispatch before this one. */
  readonly ownInput: { readonly rounding: 'q8_0' | 'q8_k'; readonly blocks: number } | null;
}

/** Workgroup memory that every device has. */
const WORKGROUP_BYTES = 16384;

/** Bytes that `combine` takes for a single token. */
const laneBytes = (hasSubgroups: boolean): number => (hasSubgroups ? 0 : 4 * LANE_GROUPS * LANES * FEW_SUMS);

/** Whether a workgroup has memory for a rounded row. */
export const fitsOwnInput = (rounding: 'q8_0' | 'q8_k', blocks: number, hasSubgroups: boolean): boolean =>
  48 * blocks + roundingBytes(rounding, blocks, hasSubgroups) + laneBytes(hasSubgroups) <= WORKGROUP_BYTES;

/** Rows of one workgroup of `vectorKernel`. */
export const vectorRows = ({ numRows, isGated }: Pick<VectorShape, 'numRows' | 'isGated'>): number =>
  LANE_GROUPS * (isGated ? numRows / 2 : numRows);

const roundOwnInput = (rounding: 'q8_0' | 'q8_k'): string => `
  {
    let at = p.xAt;
    let factor = normFactor(at, tid);
    ${roundRow(rounding, ...storeIntegers('input', (block) => `${block} * 3u`))}
    workgroupBarrier();
  }`;

/** Products of few tokens: each group of 32 lanes computes some rows for all of them. */
export function vectorKernel(layout: WeightLayout, shape: VectorShape): KernelSource {
  const { numTokens, numRows, isGated, hasSubgroups, ownInput } = shape;
  const perGroup = isGated ? numRows / 2 : numRows;
  const sums = numRows * numTokens;
  const combined = combine(sums, hasSubgroups);
  // The rows of a gate and of its `up` alternate.
  const rowOf = (r: number): string => `min(firstRow + ${isGated ? r >> 1 : r}u, rows - 1u)`;
  const weightOf = (r: number): string => (isGated && r % 2 === 1 ? 'p.weight1' : 'weight');
  const block =
    layout.kind === 'integer'
      ? integerBlock(layout, numRows, numTokens, ownInput !== null)
      : floatBlock(layout, numRows, numTokens);
  const results = isGated
    ? unroll(perGroup * numTokens, (i) => {
        const [r, t] = [Math.floor(i / numTokens), i % numTokens];
        const [gate, up] = [2 * r * numTokens + t, (2 * r + 1) * numTokens + t];
        return `
    if (lane == ${i % LANES}u && ${t}u + firstToken < p.numTokens && firstRow + ${r}u < rows) {
      var gate = result${gate};
      var up = result${up};
      if ((flags & ${HAS_BIAS}u) != 0u) { gate += num(bias + firstRow + ${r}u); }
      if ((p.flags1 & ${HAS_BIAS}u) != 0u) { up += num(p.bias1 + firstRow + ${r}u); }
      put(out + (${t}u + firstToken) * allRows + firstRow + ${r}u, gated(p.gate, gate, up));
    }`;
      })
    : unroll(sums, (i) => {
        const [r, t] = [Math.floor(i / numTokens), i % numTokens];
        return `
    if (lane == ${i % LANES}u && ${t}u + firstToken < p.numTokens && firstRow + ${r}u < rows) ${finish(`result${i}`, `(${t}u + firstToken)`, `(firstRow + ${r}u)`)}`;
      });
  return {
    name: `vector ${layout.name} ${numTokens}x${numRows}${isGated ? ' gated' : ''}${ownInput === null ? '' : ` of ${ownInput.blocks} ${ownInput.rounding}`}`,
    params: ownInput === null ? PRODUCT_PARAMS : [...PRODUCT_PARAMS, ...NORM_PARAMS],
    code:
      EXACT_MATH +
      ACTIVATIONS +
      layout.code +
      combined.declarations +
      (ownInput === null
        ? ''
        : `\nvar<workgroup> input: array<vec4<u32>, ${3 * ownInput.blocks}>;` +
          roundingCode(ownInput.rounding, ownInput.blocks, hasSubgroups)) +
      main(`
  ${ownInput === null ? '' : roundOwnInput(ownInput.rounding)}
  let lane = tid & 31u;
  let firstToken = wid.y * ${numTokens}u;
  ${isGated ? FIRST_OUTPUT('wid.x') : chooseOutput('wid.x', LANE_GROUPS * perGroup)}
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
  ${combined.code}
  ${results}`),
  };
}

/** Threads along each side of a tile; each has four rows and four tokens, so many apart. */
const SIDE = 16;
export const TILE_ROWS = 4 * SIDE;
export const TILE_TOKENS = 4 * SIDE;

/** Rows of one workgroup of a gated tile: half of its rows are those of `up`. */
export const GATED_TILE_ROWS = TILE_ROWS / 2;

/** Products of many tokens: a tile of rows and tokens per workgroup, lane by lane. */
export function tileKernel(layout: WeightLayout, isGated = false): KernelSource {
  const cells = range(4).flatMap((r) => range(4).map((t) => ({ r, t, id: `${r}_${t}` })));
  const each = (line: (cell: (typeof cells)[number]) => string): string => cells.map(line).join('\n');
  const inner = layout.kind === 'integer' ? integerTile(layout, each, isGated) : floatTile(layout, each, isGated);
  const results = isGated
    ? cells
        .filter(({ r }) => r < 2)
        .map(
          ({ r, t, id }) => `{
    let at = firstRow + ${r * SIDE}u + row;
    let token = firstToken + ${t * SIDE}u + column;
    if (at < rows && token < p.numTokens) {
      var gate = total${id};
      var up = total${r + 2}_${t};
      if ((flags & ${HAS_BIAS}u) != 0u) { gate += num(bias + at); }
      if ((p.flags1 & ${HAS_BIAS}u) != 0u) { up += num(p.bias1 + at); }
      put(out + token * allRows + at, gated(p.gate, gate, up));
    }
  }`,
        )
        .join('\n')
    : each(
        ({ r, t, id }) => `
  if (firstRow + ${r * SIDE}u + row < rows && firstToken + ${t * SIDE}u + column < p.numTokens)
    ${finish(`total${id}`, `(firstToken + ${t * SIDE}u + column)`, `(firstRow + ${r * SIDE}u + row)`)}`,
      );
  return {
    name: `tile ${layout.name}${isGated ? ' gated' : ''}`,
    params: PRODUCT_PARAMS,
    code:
      EXACT_MATH +
      (isGated ? ACTIVATIONS : '') +
      layout.code +
      inner.declarations +
      main(`
  ${isGated ? FIRST_OUTPUT('wid.x') : chooseOutput('wid.x', TILE_ROWS)}
  let firstRow = index * ${isGated ? GATED_TILE_ROWS : TILE_ROWS}u;
  let firstToken = wid.y * ${TILE_TOKENS}u;
  // Threads of a subgroup are eight rows wide: they read the fewest words of the tiles.
  let row = (tid & 7u) + ((tid >> 2u) & 8u);
  let column = ((tid >> 3u) & 3u) + ((tid >> 4u) & 12u);
  ${each(({ id }) => `var sum${id} = 0.0; var total${id} = 0.0;`)}
  ${inner.before}
  for (var lane = 0u; lane < ${LANES}u; lane++) {
    for (var b = lane; b < p.blocks; b += ${LANES}u) {
      ${inner.stage}
    }
    ${each(({ id }) => `total${id} += sum${id}; sum${id} = 0.0;`)}
  }
  ${results}`),
  };
}

interface TileCode {
  readonly declarations: string;
  readonly before: string;
  readonly stage: string;
}

type Each = (line: (cell: { r: number; t: number; id: string }) => string) => string;

/** Where a row of the tile is: of a gate's tile the second half is `up`. */
const tileRow = (place: string, isGated: boolean): string =>
  isGated
    ? `let fromWeight = select(p.weight1, weight, ${place} < ${GATED_TILE_ROWS}u);
  let fetchRow = min(firstRow + ${place} % ${GATED_TILE_ROWS}u, rows - 1u);`
    : `let fromWeight = weight;
  let fetchRow = min(firstRow + ${place}, rows - 1u);`;

/**
 * Some threads fetch a row's block, others a token's, before the block of the last fetch is computed: a fetch takes as long
 * as that. A vector of the tile has the same number of four rows or tokens of a thread: reading the tile takes longer than
 * anything but the products.
 */
function integerTile(layout: IntegerLayout, each: Each, isGated: boolean): TileCode {
  const fetch = (block: string): string => `
        if (${block} < p.blocks) {
          if (isRow) {
            let at = fetchRow * p.blocks + ${block};
            let q = ${quantsOf(layout, `fromWeight + at * ${layout.quantVectors}u`, 'infoAt', 'at')};
            fetched0 = q[0];
            fetched1 = q[1];
            fetched2 = bitcast<vec4<u32>>(info(infoAt, at));
          } else if (isToken) {
            let at = p.x + ${block} * 3u * p.numTokens + fetchToken;
            fetched0 = scratch[at];
            fetched1 = scratch[at + p.numTokens];
            fetched2 = scratch[at + 2u * p.numTokens];
          }
        }`;
  const ofW = range(layout.infoNumbers);
  const ofX = range(layout.readsSums ? 3 : 1);
  const begins = range(layout.hasHalves ? 2 : 1);
  const store = (array: string, at: string, value: string): string => `${array}[${at}][place / ${SIDE}u] = ${value};`;
  return {
    declarations: `
var<workgroup> tile: array<vec4<u32>, ${2 * 8 * SIDE}>;
var<workgroup> rowNumbers: array<vec4<f32>, ${ofW.length * SIDE}>;
var<workgroup> tokenNumbers: array<vec4<u32>, ${ofX.length * SIDE}>;
var<workgroup> begins: array<vec4<i32>, ${begins.length * SIDE}>;`,
    before: `
  let isRow = tid < ${TILE_ROWS}u;
  let isToken = !isRow && tid < ${TILE_ROWS + TILE_TOKENS}u;
  let place = tid % ${TILE_ROWS}u;
  ${tileRow('place', isGated)}
  let infoAt = fromWeight + rows * p.blocks * ${layout.quantVectors}u;
  let fetchToken = min(firstToken + place, p.numTokens - 1u);
  let side = place % ${SIDE}u;
  let tileAt = select(${8 * SIDE}u, 0u, isRow) + side;
  var fetched0 = vec4<u32>(); var fetched1 = vec4<u32>(); var fetched2 = vec4<u32>();
  ${fetch('0u')}`,
    stage: `
      workgroupBarrier();
      if (isRow || isToken) {
        for (var w = 0u; w < 4u; w++) {
          ${store('tile', `tileAt + w * ${SIDE}u`, 'fetched0[w]')}
          ${store('tile', `tileAt + (w + 4u) * ${SIDE}u`, 'fetched1[w]')}
        }
        if (isRow) {
          ${unroll(ofW.length, (i) => store('rowNumbers', `${i * SIDE}u + side`, `bitcast<f32>(fetched2[${i}])`))}
        } else {
          let first = begin(fetched2);
          ${unroll(ofX.length, (i) => store('tokenNumbers', `${i * SIDE}u + side`, `fetched2[${i}]`))}
          ${unroll(begins.length, (i) => store('begins', `${i * SIDE}u + side`, `first[${i}]`))}
        }
      }
      workgroupBarrier();
      {
        let next = select(lane + 1u, b + ${LANES}u, b + ${LANES}u < p.blocks);
        ${fetch('next')}
      }
      ${unroll(ofW.length, (i) => `let rows${i} = rowNumbers[${i * SIDE}u + row];`)}
      ${unroll(ofX.length, (i) => `let tokens${i} = tokenNumbers[${i * SIDE}u + column];`)}
      ${unroll(begins.length, (i) => `let begins${i} = begins[${i * SIDE}u + column];`)}
      ${unroll(
        4,
        (r) =>
          `let w${r} = vec4<f32>(${range(4)
            .map((i) => (i < ofW.length ? `rows${i}[${r}]` : '0.0'))
            .join(', ')});`,
      )}
      ${unroll(
        4,
        (t) =>
          `let i${t} = vec4<u32>(${range(4)
            .map((i) => (i < ofX.length ? `tokens${i}[${t}]` : '0u'))
            .join(', ')});`,
      )}
      ${each(({ t, id }) => `var dot${id} = vec2<i32>(begins0[${t}], ${begins.length > 1 ? `begins1[${t}]` : '0'});`)}
      ${['x', secondHalf(layout)]
        .map((half, h) =>
          unroll(
            4,
            (w) => `{
        let a = tile[${(4 * h + w) * SIDE}u + row];
        let x = tile[${(8 + 4 * h + w) * SIDE}u + column];
        ${each(({ r, t, id }) => `dot${id}.${half} += dot4I8Packed(a[${r}], x[${t}]);`)}
      }`,
          ),
        )
        .join('\n')}
      ${each(({ r, t, id }) => `sum${id} = accumulate(sum${id}, dot${id}, w${r}, i${t});`)}`,
  };
}

function floatTile(layout: FloatLayout, each: Each, isGated: boolean): TileCode {
  return {
    declarations: `
var<workgroup> tileW: array<f32, ${16 * TILE_ROWS}>;
var<workgroup> tileX: array<f32, ${16 * TILE_TOKENS}>;`,
    before: '',
    // Half a block at a time: a whole one would not fit the smallest workgroup memory.
    stage: `
      for (var part = 0u; part < 2u; part++) {
        workgroupBarrier();
        for (var task = tid; task < ${4 * TILE_ROWS}u; task += 256u) {
          let r = task % ${TILE_ROWS}u;
          let i = task / ${TILE_ROWS}u;
          ${tileRow('r', isGated)}
          let at = fromWeight + (fetchRow * p.blocks + b) * ${layout.quantVectors}u;
          let v = four(at, part * 4u + i);
          for (var c = 0u; c < 4u; c++) { tileW[(i * 4u + c) * ${TILE_ROWS}u + r] = v[c]; }
        }
        for (var task = tid; task < ${4 * TILE_TOKENS}u; task += 256u) {
          let t = task % ${TILE_TOKENS}u;
          let i = task / ${TILE_TOKENS}u;
          let v = bitcast<vec4<f32>>(scratch[p.x + (min(firstToken + t, p.numTokens - 1u) * p.blocks + b) * 8u + part * 4u + i]);
          for (var c = 0u; c < 4u; c++) { tileX[(i * 4u + c) * ${TILE_TOKENS}u + t] = v[c]; }
        }
        workgroupBarrier();
        for (var k = 0u; k < 16u; k++) {
          ${unroll(4, (r) => `let a${r} = tileW[k * ${TILE_ROWS}u + ${r * SIDE}u + row];`)}
          ${unroll(4, (t) => `let x${t} = tileX[k * ${TILE_TOKENS}u + ${t * SIDE}u + column];`)}
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
