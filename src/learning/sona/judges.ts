import { RuvLLMError } from '../../core/errors.ts';
import { GATE_RULES, type ShadowResult } from '../gate/gate.ts';
import { pairedChange } from '../gate/paired.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { ExampleSets } from './examples.ts';
import type { AdapterPlan, LearningWork } from './types.ts';

/** Examples with their losses before training. */
export interface Judge {
  readonly examples: readonly TrainingExample[];
  readonly before: readonly number[];
  readonly elapsedMs: number;
}

/** Evaluation sets of a run: as many examples as the time allows, the newest first. */
export interface Judges {
  readonly heldOut: Judge;
  /** Two halves of the unrated answers: `tuning` decides how far to go, `elsewhere` is for the gate. */
  readonly tuning: Judge;
  readonly elsewhere: Judge;
  /** Held-out examples of finished tasks: their rise in loss is forgetting. */
  readonly earlier: Judge;
  /** Expected time of all evaluations after training. */
  readonly afterMs: number;
  /** Mean time of one pass; null without examples. */
  readonly passMs: number | null;
}

/** Shares of the way to the trained weights, tried in this order. */
const SHARES = [1, 0.5, 0.25, 0.125];
/** Half of what the gate allows, because the gate uses other examples. */
const MAX_TUNED_RISE = GATE_RULES.maxRiseElsewhere / 2;

/** Shares of the time limit for one evaluation of each set; before and after training they add up to less than half. */
const TIME_SHARES = { heldOut: 1 / 8, tuning: 1 / 64, elsewhere: 1 / 32, earlier: 1 / 32 } as const;
/** Evaluated however slow the model is: the gate decides nothing with fewer held-out examples. */
const MIN_COUNTS = { heldOut: GATE_RULES.minExamples, tuning: 2, elsewhere: 2, earlier: 2 } as const;

type Serving = Float32Array | null;

/** Evaluates before training; the time it takes determines when training must end. */
export async function callJudges(
  work: LearningWork,
  plan: AdapterPlan,
  { heldOut, elsewhere, earlier }: Pick<ExampleSets, 'heldOut' | 'elsewhere'> & { readonly earlier: readonly TrainingExample[] }, // prettier-ignore
  serving: Serving,
  limitMs: number,
): Promise<Judges> {
  async function call(name: keyof typeof TIME_SHARES, given: readonly TrainingExample[]): Promise<Judge> {
    const newest = given.toReversed();
    const limits = { timeLimitMs: limitMs * TIME_SHARES[name], minExamples: MIN_COUNTS[name] };
    const { losses, elapsedMs } = await work.losses(plan, newest, serving, limits);
    return { examples: newest.slice(0, losses.length), before: losses, elapsedMs };
  }
  const halfOf = (rest: number) => elsewhere.filter((_, i) => i % 2 === rest);
  const judges = {
    heldOut: await call('heldOut', heldOut),
    tuning: await call('tuning', halfOf(0)),
    elsewhere: await call('elsewhere', halfOf(1)),
    earlier: await call('earlier', earlier),
  };
  const all = Object.values(judges);
  const numPasses = all.reduce((sum, { before }) => sum + before.length, 0);
  return {
    ...judges,
    afterMs: all.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0) + (SHARES.length - 1) * judges.tuning.elapsedMs,
    passMs: numPasses === 0 ? null : all.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0) / numPasses,
  };
}

/** Evaluates the same examples with the trained parameters. */
export async function judge(
  work: LearningWork,
  plan: AdapterPlan,
  { examples, before }: Judge,
  parameters: Float32Array,
): Promise<ShadowResult> {
  try {
    return { before, after: (await work.losses(plan, examples, parameters, null)).losses };
  } catch (error) {
    // Parameters that break the model are refused by the gate like any others.
    if (!isBroken(error)) throw error;
    return { before, after: before.map(() => Number.NaN) };
  }
}

/** Whether a value was not finite. */
export const isBroken = (error: unknown): error is RuvLLMError =>
  error instanceof RuvLLMError && error.code === 'bad_gradient';

/**
 * Goes as far towards the trained parameters as other answers allow: half the way keeps most of the gain for a quarter of the harm.
 */
export async function goAsFar(
  work: LearningWork,
  plan: AdapterPlan,
  tuning: Judge,
  serving: Serving,
  trained: Float32Array,
): Promise<{ readonly parameters: Float32Array; readonly share: number }> {
  for (const share of SHARES) {
    const parameters = share === 1 ? trained : await work.partOf(plan, serving, trained, share);
    const { before, after } = await judge(work, plan, tuning, parameters);
    const rise = pairedChange(before, after).mean;
    if (rise <= MAX_TUNED_RISE || share === SHARES.at(-1)) return { parameters, share };
  }
  throw new RuvLLMError('internal', 'there are no shares');
}
