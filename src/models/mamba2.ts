import { RuvLLMError } from '../core/errors.ts';
import { MAX_CONV_WIDTH, type Offset } from '../kernels/contract.ts';
import { multiplyInput } from './decoder-blocks.ts';
import type { BlockInput } from './decoder-norms.ts';
import type { DecoderStep } from './decoder-step.ts';
import { readCount } from './read-count.ts';
import { stateRows } from './recurrent-layers.ts';
import type { ModelFile } from './types.ts';
import type { Projection, WeightLoader } from './weight-loader.ts';

const MAX_DIM = 2 ** 20;
const MAX_HEADS = 4096;

/** The dimensions of Mamba 2 layers. */
export interface Mamba2Shape {
  readonly innerDim: number;
  readonly numHeads: number;
  readonly headDim: number;
  readonly numGroups: number;
  readonly stateDim: number;
  readonly convWidth: number;
}

export function readMamba2Shape({ gguf, shape: { architecture } }: ModelFile): Mamba2Shape {
  const count = (key: string, max: number): number => readCount(gguf.metadata, `${architecture}.ssm.${key}`, max);
  const innerDim = count('inner_size', MAX_DIM);
  const numHeads = count('time_step_rank', MAX_HEADS);
  const numGroups = count('group_count', numHeads);
  const stateDim = count('state_size', MAX_DIM);
  if (innerDim % numHeads !== 0 || numHeads % numGroups !== 0 || stateDim % 4 !== 0) {
    throw new RuvLLMError(
      'invalid_model_file',
      `${architecture}: ${innerDim} values in ${numHeads} heads and ${numGroups} groups with states of ${stateDim} do not divide evenly`,
      { data: { innerDim, numHeads, numGroups, stateDim } },
    );
  }
  const convWidth = count('conv_kernel', MAX_CONV_WIDTH);
  return { innerDim, numHeads, headDim: innerDim / numHeads, numGroups, stateDim, convWidth };
}

/** Values of the inputs that convolutions mix: x, b and c. */
const mixedDims = ({ innerDim, numGroups, stateDim }: Mamba2Shape) =>
  [innerDim, numGroups * stateDim, numGroups * stateDim] as const;

/** Bytes of a layer's state: the last inputs of its convolutions, then the state of each head. */
export function mamba2StateBytes(shape: Mamba2Shape): number {
  const numMixed = mixedDims(shape).reduce((sum, dim) => sum + dim, 0);
  return 4 * ((shape.convWidth - 1) * numMixed + shape.innerDim * shape.stateDim);
}

/** Buffers of a step: values per row. */
export function mamba2Scratch(shape: Mamba2Shape): Record<(typeof BUFFERS)[number], number> {
  const { innerDim, numHeads, numGroups, stateDim } = shape;
  const group = numGroups * stateDim;
  return {
    ssmZ: innerDim,
    ssmX: innerDim,
    ssmB: group,
    ssmC: group,
    ssmDt: numHeads,
    ssmMixedX: innerDim,
    ssmMixedB: group,
    ssmMixedC: group,
  };
}

const BUFFERS = ['ssmZ', 'ssmX', 'ssmB', 'ssmC', 'ssmDt', 'ssmMixedX', 'ssmMixedB', 'ssmMixedC'] as const;

export interface Mamba2Weights {
  /** Stacked in the file. */
  readonly z: Projection;
  readonly x: Projection;
  readonly b: Projection;
  readonly c: Projection;
  readonly dt: Projection;
  /** f32[convWidth][channels] of x, b and c, and their biases. */
  readonly kernels: readonly [Offset, Offset, Offset];
  readonly kernelBiases: readonly [Offset, Offset, Offset] | null;
  /** f32[numHeads] each. */
  readonly dtBias: Offset;
  readonly a: Offset;
  readonly d: Offset;
  /** f32[innerDim], in groups that are normalized one by one; null: none. */
  readonly norm: Offset | null;
  /** [embeddingDim][innerDim] */
  readonly output: Projection;
}

export function readMamba2(
  loader: WeightLoader,
  layer: number,
  embeddingDim: number,
  shape: Mamba2Shape,
  // Norm and biases. In a family that always has them, a missing one is a damaged file.
  { hasOptionalParts = false }: { readonly hasOptionalParts?: boolean } = {},
): Mamba2Weights {
  const { innerDim, numHeads, numGroups, convWidth } = shape;
  const name = (part: string): string => `blk.${layer}.ssm_${part}`;
  const [normName, biasName] = [`${name('norm')}.weight`, `${name('conv1d')}.bias`];
  const mixed = mixedDims(shape);
  const rows = [innerDim, ...mixed, numHeads] as const;
  const site = (part: string): string => `${name('in')}.${part}`;
  const sites = [site('z'), site('x'), site('b'), site('c'), site('dt')] as const;
  const [z, x, b, c, dt] = loader.splitProjection(name('in'), rows, embeddingDim, sites);
  return {
    z,
    x,
    b,
    c,
    dt,
    kernels: loader.transposedParts(`${name('conv1d')}.weight`, mixed, convWidth),
    kernelBiases: loader.has(biasName) || !hasOptionalParts ? loader.vectorParts(biasName, mixed) : null,
    dtBias: loader.vector(`${name('dt')}.bias`, numHeads),
    a: loader.matrixAsVector(name('a'), numHeads),
    d: loader.matrixAsVector(name('d'), numHeads),
    norm:
      loader.has(normName) || !hasOptionalParts
        ? loader.groupedVector(normName, numGroups, innerDim / numGroups)
        : null,
    output: loader.projection(name('out'), embeddingDim, innerDim),
  };
}

/** ssmX = norm(silu(z) * scan(…)): the input of the layer's output matrix. Returns that buffer. */
export function runMamba2(
  step: DecoderStep,
  input: BlockInput,
  weights: Mamba2Weights,
  shape: Mamba2Shape,
  { partOffset, epsilon }: { readonly partOffset: number; readonly epsilon: number },
): Offset {
  const { pack, buffers, numTokens } = step;
  const { innerDim, numHeads, headDim, numGroups, stateDim, convWidth } = shape;
  const at = buffers.scratch as Record<(typeof BUFFERS)[number], Offset>;
  multiplyInput(step, input, [
    { ...weights.z, out: at.ssmZ },
    { ...weights.x, out: at.ssmX },
    { ...weights.b, out: at.ssmB },
    { ...weights.c, out: at.ssmC },
    { ...weights.dt, out: at.ssmDt },
  ]);
  let offset = partOffset;
  for (const [i, [x, out]] of (
    [
      [at.ssmX, at.ssmMixedX],
      [at.ssmB, at.ssmMixedB],
      [at.ssmC, at.ssmMixedC],
    ] as const
  ).entries()) {
    const channels = mixedDims(shape)[i]!;
    const kernel = { weight: weights.kernels[i]!, bias: weights.kernelBiases?.[i] ?? null, width: convWidth };
    pack.causalConv({ ...stateRows(step, offset), ...kernel, x, out, channels, activation: 'silu' });
    offset += (convWidth - 1) * channels * 4;
  }
  const heads = { numHeads, headDim, numGroups, stateDim };
  const { dtBias, a, d } = weights;
  const inputs = { x: at.ssmMixedX, dt: at.ssmDt, b: at.ssmMixedB, c: at.ssmMixedC };
  pack.selectiveScan({ ...stateRows(step, offset), ...inputs, dtBias, a, d, ...heads, out: at.ssmMixedX });
  const count = numTokens * innerDim;
  pack.gatedActivation({ gate: at.ssmZ, up: at.ssmMixedX, out: at.ssmX, count, activation: 'silu' });
  if (weights.norm !== null) normalizeGroups(step, weights.norm, shape, epsilon);
  return at.ssmX;
}

/** ssmX = norm of each group of its rows, with weights of its own. Overwrites ssmMixedX. */
function normalizeGroups(step: DecoderStep, weight: Offset, shape: Mamba2Shape, epsilon: number): void {
  const { pack, buffers, numTokens } = step;
  const { ssmX: x, ssmMixedX: groups } = buffers.scratch as Record<(typeof BUFFERS)[number], Offset>;
  const { innerDim, numGroups } = shape;
  const dim = innerDim / numGroups;
  if (numGroups === 1) {
    pack.rmsNorm({ x, weight, out: x, numRows: numTokens, dim, epsilon });
    return;
  }
  const count = { numOuter: numTokens, numInner: numGroups, width: dim };
  const [rows, grouped] = [{ outer: innerDim, inner: dim }, { outer: dim, inner: numTokens * dim }]; // prettier-ignore
  pack.copyBlocks({ x, out: groups, ...count, from: rows, to: grouped });
  for (let group = 0; group < numGroups; group++) {
    const at = groups + group * numTokens * dim * 4;
    pack.rmsNorm({ x: at, weight: weight + group * dim * 4, out: at, numRows: numTokens, dim, epsilon });
  }
  pack.copyBlocks({ x: groups, out: x, ...count, from: grouped, to: rows });
}
