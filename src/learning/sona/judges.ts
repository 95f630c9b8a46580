import { RuvLLMError } from '../../core/errors.ts';
import { GATE_RULES, type ShadowResult } from '../gate/gate.ts';
import { pairedChange } from '../gate/paired.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { ExampleSets } from './examples.ts';
import type { AdapterPlan, LearningWork } from './types.ts';

/** Examples with their losses under what serves. */
export interface Judge {
  readonly examples: readonly TrainingExample[];
  readonly before: readonly number[];
  readonly elapsedMs: number;
}

/** Who judges a run: as many examples as the time allows, the newest first. */
export interface Judges {
  readonly heldOut: Judge;
  /** Two halves of what must stay: one says how far to go, the other judges. */
  readonly tuning: Judge;
  readonly elsewhere: Judge;
  /** Held-out examples of finished tasks: what they lose is forgetting. */
  readonly earlier: Judge;
  /** What all of them take under what was trained. */
  readonly afterMs: number;
  /** One pass of one example; null where there was none. */
  readonly passMs: number | null;
}

/** Shares of the way that are tried, the largest first. */
const SHARES = [1, 0.5, 0.25, 0.125];
/** Half of what the gate allows: the half that judges has other examples. */
const MAX_TUNED_RISE = GATE_RULES.maxRiseElsewhere / 2;

/** Of the limit of a loop, each under what serves: with the passes under what was trained they are a half of it. */
const TIME_SHARES = { heldOut: 1 / 8, tuning: 1 / 64, elsewhere: 1 / 32, earlier: 1 / 32 } as const;
/** However slow: fewer held-out ones decide nothing. */
const MIN_COUNTS = { heldOut: GATE_RULES.minExamples, tuning: 2, elsewhere: 2, earlier: 2 } as const;

type Serving = Float32Array | null;

/** Before anything is trained: what it takes says when training must end. */
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

/** The same examples under what was trained. */
export async function judge(
  work: LearningWork,
  plan: AdapterPlan,
  { examples, before }: Judge,
  parameters: Float32Array,
): Promise<ShadowResult> {
  try {
    return { before, after: (await work.losses(plan, examples, parameters, null)).losses };
  } catch (error) {
    // What breaks the model is judged, and written down, like everything else that is refused.
    if (!isBroken(error)) throw error;
    return { before, after: before.map(() => Number.NaN) };
  }
}

/** A number on the way was none. */
export const isBroken = (error: unknown): error is RuvLLMError =>
  error instanceof RuvLLMError && error.code === 'bad_gradient';

/**
 * As far towards what was trained as the model still says what it said elsewhere: half the way keeps most of what was learned and costs a
 * quarter of the harm.
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
