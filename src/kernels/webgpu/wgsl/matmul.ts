import { ACTIVATIONS, EXACT_MATH, type KernelSource, main, range, unroll } from './common.ts';
import { type FloatLayout, type IntegerLayout, quantsOf, type WeightLayout } from './layouts.ts';
import { NORM_PARAMS, roundingBytes, roundingCode, roundRow, storeIntegers } from './prepare.ts';
import { chooseOutput, finish, FIRST_OUTPUT, HAS_BIAS, LANES, PRODUCT_PARAMS, secondHalf } from './product-parts.ts';

const LANE_GROUPS = 8;

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
