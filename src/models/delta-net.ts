import { RuvLLMError } from '../core/errors.ts';
import { type DeltaScanOp, MAX_CONV_WIDTH, type Offset } from '../kernels/contract.ts';
import { multiplyInput } from './decoder-blocks.ts';
import type { BlockInput } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readCount } from './read-count.ts';
import { stateRows } from './recurrent-layers.ts';
import type { ModelFile } from './types.ts';
import type { Projection, RowRange, WeightLoader } from './weight-loader.ts';

const MAX_DIM = 2 ** 20;
const MAX_HEADS = 4096;
const MAX_HEAD_DIM = 1024;

/** The dimensions of gated delta net layers. */
export interface DeltaNetShape extends Pick<
  DeltaScanOp,
  'numHeads' | 'numKeyHeads' | 'keyDim' | 'valueDim' | 'sharing'
> {
  readonly convWidth: number;
}

export function readDeltaNetShape(file: ModelFile, sharing: DeltaScanOp['sharing']): DeltaNetShape {
  const { architecture } = file.shape;
  const count = (key: string, max: number): number => readCount(file.gguf.metadata, `${architecture}.ssm.${key}`, max);
  const numHeads = count('time_step_rank', MAX_HEADS);
  const numKeyHeads = count('group_count', numHeads);
  const keyDim = count('state_size', MAX_HEAD_DIM);
  const innerDim = count('inner_size', MAX_DIM);
  if (innerDim !== numHeads * keyDim || numHeads % numKeyHeads !== 0 || keyDim % 4 !== 0) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: ${innerDim} values in ${numHeads} heads over ${numKeyHeads} key heads of ${keyDim} do not divide evenly`,
      { data: { innerDim, numHeads, numKeyHeads, keyDim } },
    );
  }
  const convWidth = count('conv_kernel', MAX_CONV_WIDTH);
  return { numHeads, numKeyHeads, keyDim, valueDim: keyDim, sharing, convWidth };
}

/** Values of the inputs that convolutions mix: queries, keys and values. */
const mixedDims = ({ numHeads, numKeyHeads, keyDim, valueDim }: DeltaNetShape) =>
  [numKeyHeads * keyDim, numKeyHeads * keyDim, numHeads * valueDim] as const;

/** Bytes of a layer's state: the last inputs of its convolutions, then the state of each head. */
export function deltaNetStateBytes(shape: DeltaNetShape): number {
  const { numHeads, keyDim, valueDim, convWidth } = shape;
  const numMixed = mixedDims(shape).reduce((sum, dim) => sum + dim, 0);
  return 4 * ((convWidth - 1) * numMixed + numHeads * valueDim * keyDim);
}

const BUFFERS = ['netQ', 'netK', 'netV', 'netMixedQ', 'netMixedK', 'netMixedV', 'netZ', 'netBeta', 'netDt'] as const;

/** Buffers of a step: values per row. */
export function deltaNetScratch(shape: DeltaNetShape): Record<(typeof BUFFERS)[number], number> {
  const [q, k, v] = mixedDims(shape);
  const { numHeads } = shape;
  return {
    netQ: q,
    netK: k,
    netV: v,
    netMixedQ: q,
    netMixedK: k,
    netMixedV: v,
    netZ: v,
    netBeta: numHeads,
    netDt: numHeads,
  };
}

export interface DeltaNetWeights {
  readonly q: Projection;
  readonly k: Projection;
  readonly v: Projection;
  /** The gate of the result. */
  readonly z: Projection;
  readonly beta: Projection;
  readonly dt: Projection;
  /** f32[convWidth][channels] of q, k and v. */
  readonly kernels: readonly [Offset, Offset, Offset];
  /** f32[numHeads] each. */
  readonly dtBias: Offset;
  readonly a: Offset;
  /** f32[valueDim], of each head. */
  readonly norm: Offset;
  readonly output: Projection;
}

export function readDeltaNet(
  loader: WeightLoader,
  layer: number,
  embeddingDim: number,
  shape: DeltaNetShape,
): DeltaNetWeights {
  const { numHeads, valueDim, convWidth } = shape;
  const name = (part: string): string => `blk.${layer}.${part}`;
  const mixed = mixedDims(shape);
  const innerDim = numHeads * valueDim;
  return {
    ...readInputs(loader, name, embeddingDim, shape),
    ...readSteps(loader, name, embeddingDim, shape),
    kernels: loader.transposedParts(name('ssm_conv1d.weight'), mixed, convWidth),
    dtBias: loader.vector(name('ssm_dt.bias'), numHeads),
    a: loader.vector(name('ssm_a'), numHeads),
    norm: loader.vector(name('ssm_norm.weight'), valueDim),
    output: loader.projection(name('ssm_out'), embeddingDim, innerDim),
  };
}

/** Old files stack q, k, v and z of each key head. */
function readInputs(
  loader: WeightLoader,
  name: (part: string) => string,
  embeddingDim: number,
  shape: DeltaNetShape,
): Pick<DeltaNetWeights, 'q' | 'k' | 'v' | 'z'> {
  const { numHeads, numKeyHeads, keyDim, valueDim } = shape;
  const stacked = name('ssm_in');
  if (!loader.has(`${stacked}.weight`)) {
    const sites = [`${name('attn_qkv')}.q`, `${name('attn_qkv')}.k`, `${name('attn_qkv')}.v`] as const;
    const [q, k, v] = loader.splitProjection(name('attn_qkv'), mixedDims(shape), embeddingDim, sites);
    return { q, k, v, z: loader.projection(name('attn_gate'), numHeads * valueDim, embeddingDim) };
  }
  const values = (numHeads / numKeyHeads) * valueDim;
  const pick = (part: string, start: number, numRows: number): Projection =>
    loader.pickedRows(stacked, everyGroup(numKeyHeads, 2 * keyDim + 2 * values, start, numRows), embeddingDim, {
      site: `${stacked}.${part}`,
      totalRows: numKeyHeads * (2 * keyDim + 2 * values),
    });
  return {
    q: pick('q', 0, keyDim),
    k: pick('k', keyDim, keyDim),
    v: pick('v', 2 * keyDim, values),
    z: pick('z', 2 * keyDim + values, values),
  };
}

/** Strengths and step sizes: two matrices, or one that stacks both for each key head. */
function readSteps(
  loader: WeightLoader,
  name: (part: string) => string,
  embeddingDim: number,
  { numHeads, numKeyHeads }: DeltaNetShape,
): Pick<DeltaNetWeights, 'beta' | 'dt'> {
  const stacked = name('ssm_ba');
  if (!loader.has(`${stacked}.weight`)) {
    return {
      beta: loader.projection(name('ssm_beta'), numHeads, embeddingDim),
      dt: loader.projection(name('ssm_alpha'), numHeads, embeddingDim),
    };
  }
  const perKey = numHeads / numKeyHeads;
  const pick = (part: string, start: number): Projection =>
    loader.pickedRows(stacked, everyGroup(numKeyHeads, 2 * perKey, start, perKey), embeddingDim, {
      site: `${stacked}.${part}`,
      totalRows: 2 * numHeads,
    });
  return { beta: pick('beta', 0), dt: pick('alpha', perKey) };
}

/** The same rows of each group of `groupRows`. */
export const everyGroup = (count: number, groupRows: number, start: number, numRows: number): RowRange[] =>
  Array.from({ length: count }, (_, group) => ({ start: group * groupRows + start, numRows }));

/** netV = norm(scan) * silu(z): the input of the layer's output matrix. Returns that buffer. */
export function runDeltaNet(
  step: DecoderStep,
  input: BlockInput,
  weights: DeltaNetWeights,
  shape: DeltaNetShape,
  { partOffset, epsilon }: { readonly partOffset: number; readonly epsilon: number },
): Offset {
  const { pack, buffers, numTokens } = step;
  const { convWidth: width, ...heads } = shape;
  const at = buffers.scratch as Record<(typeof BUFFERS)[number], Offset>;
  multiplyInput(step, input, [
    { ...weights.q, out: at.netQ },
    { ...weights.k, out: at.netK },
    { ...weights.v, out: at.netV },
    { ...weights.z, out: at.netZ },
    { ...weights.beta, out: at.netBeta },
    { ...weights.dt, out: at.netDt },
  ]);
  let offset = partOffset;
  const mixes = [[at.netQ, at.netMixedQ], [at.netK, at.netMixedK], [at.netV, at.netMixedV]] as const; // prettier-ignore
  for (const [i, [x, out]] of mixes.entries()) {
    const channels = mixedDims(shape)[i]!;
    const kernel = { weight: weights.kernels[i]!, bias: null, width, activation: 'silu' as const };
    pack.causalConv({ ...stateRows(step, offset), ...kernel, x, out, channels });
    offset += (width - 1) * channels * 4;
  }
  const inputs = { q: at.netMixedQ, k: at.netMixedK, v: at.netMixedV, dt: at.netDt, beta: at.netBeta };
  const { dtBias, a, norm } = weights;
  pack.deltaScan({ ...stateRows(step, offset), ...inputs, dtBias, a, out: at.netMixedV, ...heads, epsilon });
  const rows = { numRows: numTokens * heads.numHeads, dim: heads.valueDim, epsilon };
  pack.rmsNorm({ x: at.netMixedV, weight: norm, out: at.netMixedV, ...rows });
  const count = numTokens * heads.numHeads * heads.valueDim;
  pack.gatedActivation({ gate: at.netZ, up: at.netMixedV, out: at.netV, count, activation: 'silu' });
  return at.netV;
}
