import type { GatedActivationOp, InputNorm, KernelPack, Offset, WeightMatrix } from './contract.ts';
import {
  checkExperts,
  type ExpertRouting,
  expertPasses,
  expertScratch,
  type ExpertScratch,
  type ExpertSizes,
  type ExpertsOp,
  type ExpertStack,
} from './experts-op.ts';
import { OPCODES } from './opcodes.ts';
import type { RecordedLayout, RecordedPackParts, Word } from './recorded-parts.ts';

const SCORES: Readonly<Record<ExpertRouting['scores'], number>> = { softmax: 0, sigmoid: 1, 'chosen-softmax': 2 };
/** Rows are only copied. */
const UNROUNDED = -1;

interface ExpertParts extends Pick<RecordedPackParts, 'record' | 'isFusing' | 'groupsPerChunk' | 'groupRows'> {
  readonly gateKinds: Readonly<Record<GatedActivationOp['activation'], number>>;
  layoutOf(weight: WeightMatrix): RecordedLayout;
  /** Rounds the rows of a plain product; returns their place for each weight. */
  prepareRows(x: Offset, norm: InputNorm | null, numTokens: number, weights: readonly WeightMatrix[]): Offset[];
  gatedActivation(op: GatedActivationOp): void;
}

/** The routed experts of recorded packs: choose, sort by expert, multiply expert by expert, add the weighted rows. */
export function createRecordedExperts(parts: ExpertParts): Pick<KernelPack, 'experts'> {
  return {
    experts(op) {
      const sizes = checkExperts(op);
      for (const pass of expertPasses(op, sizes)) recordPass(parts, pass, sizes);
    },
  };
}

interface Pass {
  readonly op: ExpertsOp;
  readonly sizes: ExpertSizes;
  /** Offsets in the arena. */
  readonly at: ExpertScratch;
}

function recordPass(parts: ExpertParts, op: ExpertsOp, sizes: ExpertSizes): void {
  const layout = expertScratch(sizes, op.numTokens);
  const offset = (part: number): Offset => op.scratch + part;
  const at: ExpertScratch = {
    ...layout,
    plan: offset(layout.plan),
    ids: offset(layout.ids),
    weights: offset(layout.weights),
    places: offset(layout.places),
    rounded: offset(layout.rounded),
    rows: offset(layout.rows),
    gated: offset(layout.gated),
  };
  const pass: Pass = { op, sizes, at };
  const { record } = parts;
  recordChoice(parts, pass);
  const { numTokens, gate, up, down, activation } = op;
  const { numUsed, dim, feedForwardDim } = sizes;
  const pairs = numTokens * numUsed;
  const isSameRounding = parts.layoutOf(gate.weight).activation === parts.layoutOf(up.weight).activation;
  const inputs = createInputs(parts, pass, [gate.weight, up.weight]);
  if (parts.isFusing && isSameRounding) {
    const x = inputs(gate);
    multiply(parts, pass, gate, x, at.rows, 'barrier', [parts.gateKinds[activation], ...secondWords(parts, up, x)]);
  } else {
    multiply(parts, pass, gate, inputs(gate), at.rows, isSameRounding ? 'nothing' : 'barrier');
    multiply(parts, pass, up, isSameRounding ? inputs(gate) : inputs(up), at.gated, 'barrier');
    parts.gatedActivation({ gate: at.rows, up: at.gated, out: at.rows, count: pairs * feedForwardDim, activation });
  }
  roundRows(parts, pass, down, at.rows, feedForwardDim, true);
  multiply(parts, pass, down, { at: at.rounded, isShared: false }, at.rows, 'barrier');
  record(OPCODES.combine, [at.rows, at.places, at.weights, numUsed, dim, op.out, numTokens], 'barrier', numTokens);
}

function recordChoice({ record }: ExpertParts, { op, sizes, at }: Pass): void {
  const { numTokens, routing } = op;
  const { numExperts, numUsed } = sizes;
  const words: Word[] = [op.logits, numExperts, numUsed, SCORES[routing.scores], routing.isNormalized ? 1 : 0];
  words.push({ f32: routing.scale }, routing.choiceBias ?? 0, routing.numGroups, routing.numUsedGroups);
  words.push(at.ids, at.weights, numTokens, routing.expertScales ?? 0);
  // One token is chosen for and sorted by the same thread.
  record(OPCODES.route, words, numTokens === 1 ? 'chain' : 'barrier', numTokens);
  record(OPCODES.planExperts, [at.ids, numExperts, numTokens * numUsed, at.plan, at.places], 'barrier', 1);
}

interface Input {
  readonly at: Offset;
  /** All rows are the same token. */
  readonly isShared: boolean;
}

/** The rounded input of a stack. One token is rounded once for all its experts; several are sorted by expert. */
function createInputs(parts: ExpertParts, pass: Pass, weights: readonly WeightMatrix[]): (stack: ExpertStack) => Input {
  const { x, numTokens } = pass.op;
  if (numTokens === 1) {
    const rows = parts.prepareRows(x, null, 1, weights);
    return ({ weight }) => ({ at: rows[weights.indexOf(weight)]!, isShared: true });
  }
  let rounding: number | null | undefined;
  return (stack) => {
    const { activation } = parts.layoutOf(stack.weight);
    if (activation !== rounding) roundRows(parts, pass, stack, x, pass.sizes.dim, false);
    rounding = activation;
    return { at: pass.at.rounded, isShared: false };
  };
}

function roundRows(
  { record, layoutOf }: ExpertParts,
  { op, sizes, at }: Pass,
  { weight }: ExpertStack,
  x: Offset,
  numCols: number,
  isSorted: boolean,
): void {
  const kind = layoutOf(weight).activation ?? UNROUNDED;
  const words = [x, at.rounded, kind, numCols, sizes.numUsed, at.places, isSorted ? 1 : 0, op.numTokens];
  record(OPCODES.roundExperts, words, 'barrier', op.numTokens);
}

const secondWords = ({ layoutOf }: ExpertParts, { weight, bias }: ExpertStack, x: Input): number[] => {
  const layout = layoutOf(weight);
  return [weight.offset, layout.id, x.at, layout.activation ?? 0, bias ?? 0];
};

function multiply(
  parts: ExpertParts,
  { op, sizes, at }: Pass,
  { weight, bias }: ExpertStack,
  x: Input,
  out: Offset,
  follow: 'nothing' | 'barrier',
  gate: readonly number[] = [0, 0, 0, 0, 0, 0],
): void {
  const { numExperts, numUsed } = sizes;
  const layout = parts.layoutOf(weight);
  const numRows = weight.numRows / numExperts;
  const mostActive = Math.min(numExperts, op.numTokens * numUsed);
  const groups = numRows / parts.groupRows;
  const rowsPerExpert = Math.ceil((op.numTokens * numUsed) / numExperts);
  const groupsPerChunk = Math.min(groups, parts.groupsPerChunk(groups * mostActive, rowsPerExpert));
  const words = [weight.offset, layout.id, numRows, weight.numCols, x.at, layout.activation ?? 0, op.numTokens];
  words.push(at.plan, out, bias ?? 0, x.isShared ? 1 : 0, groupsPerChunk, numExperts);
  parts.record(OPCODES.experts, [...words, ...gate, at.numRounded, mostActive], follow);
}
