import { RuvLLMError } from '../../core/errors.ts';
import { hashText } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { decidePromotion, GATE_RULES } from '../gate/gate.ts';
import { pairedChange } from '../gate/paired.ts';
import type { EwcTask } from '../ewc/ewc.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import type { Checkpoints } from './checkpoint.ts';
import { buildExamples, type ExampleSets } from './examples.ts';
import {
  adapterLine,
  getLearnedAdapter,
  type LearnedAdapter,
  lessonsOf,
  putLearnedAdapter,
} from './learned-adapter.ts';
import type { ResolvedSonaOptions } from './options.ts';
import type { AdapterPlan, LearningModel, LearningWork } from './types.ts';

export interface ConsolidateContext {
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly checkpoints: Checkpoints;
  readonly work: LearningWork;
  readonly services: MemoryServices;
  readonly options: ResolvedSonaOptions;
}

export interface ConsolidateRun {
  readonly tenant: string;
  readonly model: LearningModel;
  readonly loop: LearnedVersion['loop'];
  readonly limitMs: number;
  readonly numEpochs: number;
  /** True: what was learned before does not count. */
  readonly isFromScratch: boolean;
  readonly signal: AbortSignal | null;
}

export interface ConsolidateReport {
  /** What it came to; null: there was nothing to do. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
  readonly numTrained: number;
  readonly numHeldOut: number;
  readonly numElsewhere: number;
  readonly elapsedMs: number;
}

type Examples = ExampleSets['elsewhere'];

/** λ and the tasks EWC remembers. */
const FIRST_LAMBDA = 2000;
const MAX_TASKS = 10;

/** Trains an adapter on what was rated, judges it on what was held out, and writes down what came of it. */
export async function consolidate(context: ConsolidateContext, run: ConsolidateRun): Promise<ConsolidateReport> {
  const { versions, blobs, work, options } = context;
  const { tenant, model } = run;
  const startMs = context.services.now();
  const sets = await gather(context, run);
  const counts = {
    numTrained: sets.train.length,
    numHeldOut: sets.heldOut.length,
    numElsewhere: sets.elsewhere.length,
  };
  const report = (version: LearnedVersion | null, reason: string): ConsolidateReport => ({
    version,
    reason,
    ...counts,
    elapsedMs: context.services.now() - startMs,
  });
  if (sets.train.length < options.minExamples) {
    return report(null, `${sets.train.length} examples to train on, ${options.minExamples} are needed`);
  }
  const line = adapterLine(model.id);
  const active = run.isFromScratch ? null : await versions.active(tenant, line);
  const serving = active === null ? null : await getLearnedAdapter(blobs, tenant, active);
  // The deep loop goes over the same again, longer.
  const lessons = hashText(context.services.sha256, JSON.stringify([sets.train, sets.heldOut].map(plainExamples)));
  if (run.loop === 'background') {
    const why = await whyAgain(versions, tenant, line, lessons, active);
    if (why !== null) return report(null, why);
  }
  const plan: AdapterPlan = {
    path: model.path,
    rank: serving?.rank ?? options.rank,
    numLayers: serving?.numLayers ?? options.numLayers,
    maxTokens: model.maxTokens,
  };
  const before = serving?.parameters ?? null;
  // Two halves of what must stay: one says how far to go, the other judges.
  const tuning = sets.elsewhere.filter((_, i) => i % 2 === 0);
  const judging = sets.elsewhere.filter((_, i) => i % 2 === 1);
  const trained = await train(context, run, plan, sets, serving, [lessons, active?.version ?? 0]);
  const { parameters, share } = await goAsFar(work, plan, tuning, before, trained);
  const wanted = await work.shadow(plan, sets.heldOut, before, parameters);
  const elsewhere = await work.shadow(plan, judging, before, parameters);
  const judged = decidePromotion(wanted, elsewhere);
  const metrics: Readonly<Record<string, number>> = { ...judged.metrics, share };
  const decision = { ...judged, metrics };
  const common = { line, loop: run.loop, reason: decision.reason, metrics: decision.metrics };
  // Who stops a run wants no version of it, also while it is judged.
  if (run.signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped before its version was written');
  await context.checkpoints.delete(tenant, line);
  if (!decision.isAccepted) {
    const refused = await versions.add(tenant, {
      ...common,
      isAccepted: false,
      blobs: {},
      contents: { lessons },
      learnedFrom: [],
    });
    return report(refused, decision.reason);
  }
  const tasks = await rememberTask(context, plan, sets, parameters, serving);
  const kept = await putLearnedAdapter(blobs, tenant, {
    lessons,
    parameters,
    tasks,
    rank: plan.rank,
    numLayers: plan.numLayers,
    lambda: nextLambda(serving?.lambda ?? FIRST_LAMBDA, decision.metrics['elsewhere_mean'] ?? 0),
  });
  const known = active?.learnedFrom ?? [];
  const learnedFrom = [...new Set([...known, ...sets.trainedIds])].slice(-50_000);
  const accepted = await versions.add(tenant, { ...common, ...kept, isAccepted: true, learnedFrom });
  return report(accepted, decision.reason);
}

const plainExamples = (examples: Examples) =>
  examples.map(({ tokenIds, numPromptTokens, weight }) => [Array.from(tokenIds), numPromptTokens, weight ?? null]);

/** Why a run would only find out again what is known; null: there is something new. */
async function whyAgain(
  versions: VersionLog,
  tenant: string,
  line: string,
  lessons: string,
  active: LearnedVersion | null,
): Promise<string | null> {
  const [newest] = await versions.history(tenant, line, 1);
  if (newest === undefined || lessonsOf(newest) !== lessons) return null;
  if (newest.version === active?.version) return 'nothing was rated since the version that serves';
  const end = newest.isAccepted ? 'was made of the same and taken back' : `was refused: ${newest.reason}`;
  return `nothing was rated since version ${newest.version}, which ${end}`;
}

async function gather(
  { trajectories, options }: ConsolidateContext,
  { tenant, model }: ConsolidateRun,
): Promise<ExampleSets> {
  const ofModel = { field: 'model', is: '=', value: model.id } as const;
  const rated = await trajectories.find(tenant, {
    conditions: [ofModel, { field: 'verdict', is: 'in', values: ['success', 'failure'] }],
    limit: options.maxExamples,
  });
  const unrated = await trajectories.find(tenant, {
    conditions: [ofModel, { field: 'verdict', is: '=', value: 'unknown' }],
    limit: options.maxElsewhere,
  });
  // The oldest first: the order must not depend on when it is looked at.
  return buildExamples(model, rated.toReversed(), unrated.toReversed());
}

/** Shares of the way that are tried, the largest first. */
const SHARES = [1, 0.5, 0.25, 0.125];
/** Half of what the gate allows: the half that judges has other examples. */
const MAX_TUNED_RISE = GATE_RULES.maxRiseElsewhere / 2;

/**
 * As far towards what was trained as the model still says what it said elsewhere: half the way keeps most of what was learned and costs a
 * quarter of the harm.
 */
async function goAsFar(
  work: LearningWork,
  plan: AdapterPlan,
  tuning: Examples,
  before: Float32Array | null,
  trained: Float32Array,
): Promise<{ readonly parameters: Float32Array; readonly share: number }> {
  for (const share of SHARES) {
    const parameters = share === 1 ? trained : await work.partOf(plan, before, trained, share);
    const { before: old, after } = await work.shadow(plan, tuning, before, parameters);
    const rise = pairedChange(old, after).mean;
    if (rise <= MAX_TUNED_RISE || share === SHARES.at(-1)) return { parameters, share };
  }
  throw new RuvLLMError('internal', 'there are no shares');
}

/** In pieces, with what was reached kept after each: whoever stops or dies goes on from there. */
async function train(
  { work, checkpoints, services, options }: ConsolidateContext,
  { tenant, model, limitMs, numEpochs, signal }: ConsolidateRun,
  plan: AdapterPlan,
  sets: ExampleSets,
  serving: LearnedAdapter | null,
  from: readonly [lessons: string, version: number],
): Promise<Float32Array> {
  const line = adapterLine(model.id);
  // Of other words, or from another start, it would be another run.
  const runKey = hashText(services.sha256, JSON.stringify([plan, from, numEpochs, options.learningRate]));
  const endMs = services.now() + limitMs;
  if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped before its first step');
  const stop = (): void => void work.cancel();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    let state = await checkpoints.get(tenant, line, runKey);
    for (;;) {
      const outcome = await work.train({
        plan,
        train: sets.train,
        parameters: serving?.parameters ?? null,
        tasks: serving?.tasks ?? [],
        lambda: serving?.lambda ?? FIRST_LAMBDA,
        state,
        timeLimitMs: Math.max(1, Math.min(options.sliceMs, endMs - services.now())),
        numEpochs,
        learningRate: options.learningRate,
        seed: 1,
      });
      const isLate = services.now() >= endMs;
      const isEnough = outcome.isDone || (isLate && outcome.state.numSteps > 0);
      // Who stops a run wants no version of it, however far it came meanwhile.
      if (isEnough && !signal?.aborted) return outcome.parameters;
      state = outcome.state;
      await checkpoints.put(tenant, line, runKey, state);
      if (signal?.aborted)
        throw new RuvLLMError('aborted', `learning stopped after ${state.numSteps} steps; it goes on from there`);
      if (isLate) throw new RuvLLMError('deadline_exceeded', `no step of training fits into ${limitMs} ms`);
    }
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function rememberTask(
  { work, options }: ConsolidateContext,
  plan: AdapterPlan,
  sets: ExampleSets,
  parameters: Float32Array,
  serving: LearnedAdapter | null,
): Promise<readonly EwcTask[]> {
  const fisher = await work.fisher(plan, sets.train, parameters, options.fisherSamples);
  const task: EwcTask = { anchor: parameters, fisher, lambda: serving?.lambda ?? FIRST_LAMBDA };
  return [...(serving?.tasks ?? []), task].slice(-MAX_TASKS);
}

/** Held tighter after a loss elsewhere, looser where nothing was lost; always from 100 to 15 000. */
function nextLambda(lambda: number, rise: number): number {
  return Math.min(15_000, Math.max(100, rise > 0.01 ? lambda * 1.1 : lambda * 0.9));
}
