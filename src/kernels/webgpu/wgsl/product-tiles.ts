import { ACTIVATIONS, EXACT_MATH, type KernelSource, main, range, unroll } from './common.ts';
import { type FloatLayout, type IntegerLayout, quantsOf, type WeightLayout } from './layouts.ts';
import { chooseOutput, finish, FIRST_OUTPUT, HAS_BIAS, LANES, PRODUCT_PARAMS, secondHalf } from './product-parts.ts';

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
