import type { LowRankFactors } from '../../adapters/types.ts';
import type { PeerDelta } from '../federation/federation.ts';
import { GATE_RULES, type GateDecision, type ShadowResult } from '../gate/gate.ts';
import { pairedChange } from '../gate/paired.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import { isBroken } from './judges.ts';
import type { AdapterPlan, LearningWork, MergeOutcome } from './types.ts';

/** A merge and the peers in it. */
export interface ChosenMerge extends MergeOutcome {
  readonly used: readonly PeerDelta[];
  /** Losses of training examples with the adapter of this node alone, or without any, and with the merged one. */
  readonly trained: ShadowResult;
}

export interface MergeVotes {
  /** The adapter that this node trained without peers. */
  readonly own: OwnVote | null;
  readonly deltas: readonly PeerDelta[];
  /** Training examples, the oldest first. */
  readonly train: readonly TrainingExample[];
  readonly limitMs: number;
}

export interface OwnVote {
  readonly plan: AdapterPlan;
  readonly parameters: Float32Array;
  readonly factors: readonly LowRankFactors[];
}

/** With more peers, the mean without the extremes outvotes a liar, and each further merge takes time. */
const MAX_LEFT_OUT = 4;
/** Newest training examples that a merge is evaluated on. */
const MAX_EXAMPLES = 200;
/** Share of the time limit for the training examples with the own adapter; each merge takes as long. */
const TIME_SHARE = 1 / 64;
/** Fewer cannot show that a merge harms few requests. */
const MIN_TRAINED = 30;
/** Nats per token. The own adapter has seen these answers and the peers have not: even honest merges raise their loss a little. */
const MAX_RISE_OF_TRAINED = 2 * GATE_RULES.maxRiseElsewhere;

/**
 * The merge of all adapters, or, if that raises the loss of this node's training examples, the one without a peer that raises it least.
 * Held-out examples are left to the gate.
 */
export async function chooseMerge(
  work: Pick<LearningWork, 'losses' | 'mergeDeltas'>,
  plan: AdapterPlan,
  { own, deltas, train, limitMs }: MergeVotes,
): Promise<ChosenMerge> {
  const wanted = train.filter(({ weight = 1 }) => weight > 0).slice(-MAX_EXAMPLES);
  const limits = { timeLimitMs: limitMs * TIME_SHARE, minExamples: 2 };
  const { losses: before } = await work.losses(own?.plan ?? plan, wanted.toReversed(), own?.parameters ?? null, limits);
  const examples = wanted.toReversed().slice(0, before.length);
  async function merge(used: readonly PeerDelta[]): Promise<ChosenMerge> {
    const theirs = used.map(({ factors }) => factors);
    const merged = await work.mergeDeltas(plan, own?.factors ?? null, theirs);
    const after = await lossesOf(work, plan, examples, merged.parameters);
    return { ...merged, used, trained: { before, after } };
  }
  const all = await merge(deltas);
  const canSplit = deltas.length > 1 && deltas.length <= MAX_LEFT_OUT && examples.length > 0;
  // Without an own adapter any merge may be better than none, so all are compared.
  if (!canSplit || (own !== null && riseOf(all) <= GATE_RULES.maxRiseElsewhere)) return all;
  let best = all;
  for (const one of deltas) {
    const other = await merge(deltas.filter((delta) => delta !== one));
    // A loss that is not a number loses to every other.
    if (riseOf(other) < riseOf(best) || Number.isNaN(riseOf(best))) best = other;
  }
  return best;
}

const riseOf = ({ trained: { before, after } }: ChosenMerge): number => pairedChange(before, after).mean;

async function lossesOf(
  work: Pick<LearningWork, 'losses'>,
  plan: AdapterPlan,
  examples: readonly TrainingExample[],
  parameters: Float32Array,
): Promise<readonly number[]> {
  try {
    return (await work.losses(plan, examples, parameters, null)).losses;
  } catch (error) {
    if (!isBroken(error)) throw error;
    return examples.map(() => Number.NaN);
  }
}

export interface MergeResults {
  readonly heldOut: ShadowResult;
  readonly elsewhere: ShadowResult;
  readonly trained: ShadowResult;
}

/**
 * Also accepts a merge that the gate refused only because too few held-out requests gain: their loss falls, and the training examples,
 * which the own adapter has seen and the peers have not, show that the merge harms few requests.
 */
export function acceptHarmless(gate: GateDecision, { heldOut, elsewhere, trained }: MergeResults): GateDecision {
  const change = pairedChange(trained.before, trained.after);
  // Metrics must be finite; a loss that is not a number leaves them out.
  const measured = Number.isFinite(change.mean) && change.count > 0;
  const metrics = measured ? { ...gate.metrics, trained_count: change.count, trained_mean: change.mean } : gate.metrics;
  if (gate.isAccepted || change.count < MIN_TRAINED) return { ...gate, metrics };
  const held = pairedChange(heldOut.before, heldOut.after);
  const beside = pairedChange(elsewhere.before, elsewhere.after).mean;
  const worst = Math.max(
    ...[heldOut, elsewhere].flatMap(({ before, after }) => after.map((loss, i) => loss - before[i]!)),
  );
  const isHarmless =
    change.mean <= MAX_RISE_OF_TRAINED && worst <= GATE_RULES.maxRiseOfOne && beside <= GATE_RULES.maxRiseElsewhere;
  if (held.count < GATE_RULES.minExamples || !(held.mean < 0) || !isHarmless) return { ...gate, metrics };
  const reason = `${gate.reason}; accepted, because the loss of ${change.count} training examples rises by ${change.mean.toFixed(4)}, at most ${MAX_RISE_OF_TRAINED}`;
  return { isAccepted: true, reason, metrics };
}
