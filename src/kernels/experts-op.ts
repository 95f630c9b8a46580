import { RuvLLMError } from '../core/errors.ts';
import { alignArena, type Offset } from './arena-alignment.ts';
import type { GatedActivationOp } from './gated-activation-op.ts';
import type { WeightMatrix } from './weight-matrix.ts';

/** How tokens choose experts and weigh their results. */
export interface ExpertRouting {
  readonly numExperts: number;
  /** Experts per token. */
  readonly numUsed: number;
  /** Of a logit: its softmax over all experts or over the chosen ones, or its sigmoid. */
  readonly scores: 'softmax' | 'sigmoid' | 'chosen-softmax';
  /** f32[numExperts], added to the scores for the choice only; null: none. */
  readonly choiceBias: Offset | null;
  /** Experts are chosen from the best groups only: by the sum of the two best scores of each. 1: no groups. */
  readonly numGroups: number;
  readonly numUsedGroups: number;
  /** Weights of the chosen experts are divided by their sum. */
  readonly isNormalized: boolean;
  /** Multiplies the weights. */
  readonly scale: number;
  /** f32[numExperts], multiplies the weight of each expert after its choice; default null: none. */
  readonly expertScales?: Offset | null;
}

/** The matrices of all experts, one below the other, and their biases. */
export interface ExpertStack {
  /** numExperts × n rows; n is a multiple of `EXPERT_ROW_MULTIPLE`. */
  weight: WeightMatrix;
  /** f32[numExperts × n], or null */
  bias: Offset | null;
}

/** The routed feed-forward layer of a mixture: out[t] += sum of weight · down_e · activation(gate_e · x[t]) * (up_e · x[t]). */
export interface ExpertsOp {
  /** f32[numTokens × dim] */
  x: Offset;
  numTokens: number;
  /** f32[numTokens × numExperts]. Ties go to the expert with the lower number. */
  logits: Offset;
  routing: ExpertRouting;
  gate: ExpertStack;
  up: ExpertStack;
  down: ExpertStack;
  activation: GatedActivationOp['activation'];
  /** f32[numTokens × dim]; results are added. */
  out: Offset;
  /** `expertScratchBytes` that the pack may overwrite. */
  scratch: Offset;
}

/** Rows of an expert are a multiple of this, so that every expert starts at a row group of every pack. */
export const EXPERT_ROW_MULTIPLE = 16;
/** Most experts of a layer: packs keep one number for each on the stack. */
export const MAX_EXPERTS = 1024;
/** Most tokens of one pass; longer inputs are split, which changes no result. */
export const EXPERT_PASS_TOKENS = 512;

/** The dimensions of a layer of experts. */
export interface ExpertSizes {
  readonly numExperts: number;
  readonly numUsed: number;
  readonly dim: number;
  readonly feedForwardDim: number;
}

/** Parts of the scratch of a pass with `numTokens`, as offsets from its start. */
export interface ExpertScratch {
  /** int32 */
  readonly plan: number;
  readonly ids: number;
  readonly weights: number;
  readonly places: number;
  /** Rounded or copied rows, sorted by expert. */
  readonly rounded: number;
  /** f32[pairs × max(dim, feedForwardDim)] */
  readonly rows: number;
  /** f32[pairs × feedForwardDim] */
  readonly gated: number;
  readonly sizeBytes: number;
  /** Rows that fit into `rounded`. */
  readonly numRounded: number;
}

/** Tiles of up to 16 rows, each expert in tiles of its own. */
const MAX_PADDING = 15;

/** Where the parts of the scratch are, and their size. */
export function expertScratch(sizes: ExpertSizes, numTokens: number): ExpertScratch {
  const { numExperts, numUsed, dim, feedForwardDim } = sizes;
  const pairs = Math.min(numTokens, EXPERT_PASS_TOKENS) * numUsed;
  const width = Math.max(dim, feedForwardDim);
  const numRounded = pairs + MAX_PADDING * Math.min(numExperts, Math.floor(pairs / 2));
  let end = 0;
  const place = (numWords: number): number => {
    const at = end;
    end += alignArena(numWords * 4);
    return at;
  };
  const parts = {
    plan: place(4 + 4 * numExperts),
    ids: place(pairs),
    weights: place(pairs),
    places: place(4 * pairs),
    rounded: place(numRounded * width),
    rows: place(pairs * width),
    gated: place(pairs * feedForwardDim),
  };
  return { ...parts, sizeBytes: end, numRounded };
}

/** Bytes of `ExpertsOp.scratch` for up to `maxTokens`. */
export const expertScratchBytes = (sizes: ExpertSizes, maxTokens: number): number =>
  expertScratch(sizes, maxTokens).sizeBytes;

/** Throws if a choice is impossible or a matrix does not consist of the experts' rows. */
export function checkExperts({ routing, gate, up, down }: ExpertsOp): ExpertSizes {
  const { numExperts, numUsed, numGroups, numUsedGroups } = routing;
  const isWhole = (value: number, max: number): boolean => Number.isInteger(value) && value >= 1 && value <= max;
  const mostUsed = (numExperts / numGroups) * numUsedGroups;
  if (
    !isWhole(numExperts, MAX_EXPERTS) ||
    !isWhole(numGroups, numExperts) ||
    numExperts % numGroups !== 0 ||
    !isWhole(numUsedGroups, numGroups) ||
    !isWhole(numUsed, mostUsed)
  ) {
    throw new RuvLLMError(
      'unsupported',
      `cannot choose ${numUsed} of ${numExperts} experts from ${numUsedGroups} of ${numGroups} groups (at most ${MAX_EXPERTS} experts)`,
      { data: { numExperts, numUsed, numGroups, numUsedGroups } },
    );
  }
  const sizes = { numExperts, numUsed, dim: gate.weight.numCols, feedForwardDim: down.weight.numCols };
  const shapes = [
    [gate.weight, sizes.feedForwardDim, sizes.dim],
    [up.weight, sizes.feedForwardDim, sizes.dim],
    [down.weight, sizes.dim, sizes.feedForwardDim],
  ] as const;
  for (const [{ name, numRows, numCols }, rows, cols] of shapes) {
    if (numRows === rows * numExperts && numCols === cols && rows % EXPERT_ROW_MULTIPLE === 0) continue;
    throw new RuvLLMError(
      'unsupported',
      `${name} has ${numRows} x ${numCols} values; ${numExperts} experts need ${numExperts} times ${rows} x ${cols}, with rows a multiple of ${EXPERT_ROW_MULTIPLE}`,
      { data: { name, numRows, numCols, numExperts, expertRows: rows } },
    );
  }
  return sizes;
}

/** The passes of an operation: slices of tokens that fit the scratch. */
export function expertPasses(op: ExpertsOp, { numExperts, dim }: ExpertSizes): ExpertsOp[] {
  const passes: ExpertsOp[] = [];
  for (let first = 0; first < op.numTokens; first += EXPERT_PASS_TOKENS) {
    const numTokens = Math.min(EXPERT_PASS_TOKENS, op.numTokens - first);
    const [x, logits] = [op.x + first * dim * 4, op.logits + first * numExperts * 4];
    passes.push({ ...op, numTokens, x, logits, out: op.out + first * dim * 4 });
  }
  return passes;
}
