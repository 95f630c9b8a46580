import { RuvLLMError } from '../../core/errors.ts';
import { hashText } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { decidePromotion, GATE_RULES, type ShadowResult } from '../gate/gate.ts';
import { adaptLambda, type EarlierLosses } from '../ewc/ewc.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { hasPeers, newestIds } from '../federation/peer-id.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { MIN_FISHER_SAMPLES } from './adapter-work.ts';
import type { Checkpoints } from './checkpoint.ts';
import { dropSuperseded } from './contradictions.ts';
import { crossValidate } from './cross-validate.ts';
import { buildExamples, buildHeldOut, type ExampleSets, ratedOf } from './examples.ts';
import { examineSets, type GatheredSets } from './examine-sets.ts';
import type { ExaminedAnswers } from './examined.ts';
import { callJudges, goAsFar, isBroken, judge, type Judges } from './judges.ts';
import {
  adapterLine,
  type EwcSummary,
  getLearnedAdapter,
  type LearnedAdapter,
  lessonsOf,
  planOf,
  putLearnedAdapter,
} from './learned-adapter.ts';
import { createLoopBudget, type LoopBudget } from './loop-budget.ts';
import type { ResolvedSonaOptions } from './options.ts';
import type { Probes } from './probes.ts';
import { type EwcSettings, type TrackedTasks, trackTasks } from './track-tasks.ts';
import { trainInSlices } from './train-slices.ts';
import type { AdapterPlan, FisherOutcome, LearningModel, LearningWork } from './types.ts';

export interface ConsolidateContext {
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly checkpoints: Checkpoints;
  readonly examined: ExaminedAnswers;
  readonly probes: Probes;
  readonly work: LearningWork;
  readonly services: MemoryServices;
  readonly options: ResolvedSonaOptions;
  ewcSettings(tenant: string): Promise<EwcSettings>;
}

export interface ConsolidateRun {
  readonly tenant: string;
  readonly model: LearningModel;
  readonly loop: LearnedVersion['loop'];
  /** For the whole run: gathering, training, evaluating and the Fisher information. */
  readonly limitMs: number;
  readonly numEpochs: number;
  /** True: starts from an untrained adapter. */
  readonly isFromScratch: boolean;
  readonly signal: AbortSignal | null;
}

export interface ConsolidateReport {
  /** Null: there was nothing to do. */
  readonly version: LearnedVersion | null;
  readonly reason: string;
  readonly numTrained: number;
  readonly numHeldOut: number;
  readonly numElsewhere: number;
  readonly elapsedMs: number;
  /** Whether the next run continues where this one stopped. */
  readonly isUnfinished: boolean;
  /** Tasks that the run was held to, and λ after it; null: nothing was trained. */
  readonly ewc: RunEwc | null;
}

export interface RunEwc extends Omit<EwcSummary, 'boundariesMs'> {
  /** When the first request of a new task was created; null: the run found no boundary. */
  readonly boundaryMs: number | null;
}

type Examples = ExampleSets['elsewhere'];

/** Held-out examples of finished tasks that λ is adapted by. */
const MAX_EARLIER = 16;
/** Checkpoints of a loop: a crash costs at most one part of so many. */
const MIN_SLICES = 4;
/** Models with more parameters learn in the LM head alone: a pass through their layers takes longer than the whole limit. */
const MIN_LARGE = 1e8;
/** With fewer held-out examples the training examples are cross-validated, too. */
const MIN_HELD_OUT = 8;
/** Share of the limit in which cross-validation must end. */
const VALIDATION_SHARE = 0.85;
/** Folds share examples, so their interval is too narrow: the gain must also exceed the harm that is allowed elsewhere. */
const VALIDATED_RULES = { ...GATE_RULES, minFall: GATE_RULES.maxRiseElsewhere };
/** Versions that may be of peers in a row. */
const MAX_LOOKED_AT = 50;
const NO_TIME_LEFT = 'too little time is left for cross-validation; the next run continues';
/** Cost of a gradient in passes until one is measured: forward, and backward through inputs and factors. */
const GRADIENT_PASSES = 3;

/** Trains an adapter on rated requests, evaluates it on held-out ones, and writes the version. */
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
  const report = (version: LearnedVersion | null, reason: string, ewc: RunEwc | null = null): ConsolidateReport => ({
    version,
    reason,
    ...counts,
    elapsedMs: context.services.now() - startMs,
    isUnfinished: false,
    ewc,
  });
  if (sets.train.length < options.minExamples) {
    return report(null, `${sets.train.length} examples to train on, ${options.minExamples} are needed`);
  }
  const line = adapterLine(model.id);
  const active = run.isFromScratch ? null : await versions.active(tenant, line);
  const serving = active === null ? null : await getLearnedAdapter(blobs, tenant, active);
  // The deep loop trains on the same examples again, for longer.
  const lessons = hashText(context.services.sha256, JSON.stringify([sets.train, sets.heldOut].map(plainExamples)));
  if (run.loop === 'background') {
    const why = await whyRepeated(versions, tenant, line, lessons, active);
    if (why !== null) return report(null, why);
  }
  const numLayers = serving?.numLayers ?? layersOf(model, options);
  const plan = planOf(model, serving?.rank ?? options.rank, numLayers);
  const settings = await context.ewcSettings(tenant);
  const seen = new Set(active?.learnedFrom);
  const tracked = trackTasks(serving, sets.trained.filter(({ requestId }) => !seen.has(requestId)), settings); // prettier-ignore
  const { fisherSamples } = options;
  const minFisherSamples = Math.min(fisherSamples, MIN_FISHER_SAMPLES);
  const { limitMs } = run;
  const budget = createLoopBudget(() => context.services.now(), startMs, { limitMs, fisherSamples, minFisherSamples });
  const stop = (): void => void work.cancel();
  run.signal?.addEventListener('abort', stop, { once: true });
  try {
    const gathered = { ...sets, earlier: await gatherEarlier(context, run, tracked), avoid: [], numExamined: 0 };
    const ready = plan.numLayers > 0 ? gathered : await examineSets(context, run, gathered, startMs);
    if ('reason' in ready) return { ...report(null, ready.reason), isUnfinished: ready.isUnfinished };
    const fresh = ready.train.filter((_, i) => !seen.has(ready.trained[i]!.requestId));
    const validationEndMs = startMs + limitMs * VALIDATION_SHARE;
    const planned = { plan, sets: ready, earlier: ready.earlier, fresh, validationEndMs, active, serving, tracked, settings, lessons, budget }; // prettier-ignore
    const made = await makeVersion(context, run, planned);
    // With nothing left to examine the next run has more time; where that is too little, it waits for its interval.
    if (made === null) return { ...report(null, NO_TIME_LEFT), isUnfinished: ready.numExamined > 0 };
    const { version, lambda } = made;
    // Not before: a run that crashes continues from it.
    await context.checkpoints.delete(tenant, line);
    const { tasks, boundaryMs } = tracked;
    return report(version, version.reason, { numTasks: tasks.length, lambda, boundaryMs });
  } finally {
    run.signal?.removeEventListener('abort', stop);
  }
}

interface Planned {
  readonly plan: AdapterPlan;
  readonly sets: GatheredSets;
  /** Training examples that the serving version has not seen. */
  readonly fresh: Examples;
  readonly validationEndMs: number;
  readonly active: LearnedVersion | null;
  readonly serving: LearnedAdapter | null;
  /** Held-out examples of finished tasks. */
  readonly earlier: Examples;
  readonly tracked: TrackedTasks;
  readonly settings: EwcSettings;
  readonly lessons: string;
  readonly budget: LoopBudget;
}

/** Trains, evaluates and writes the version; a stopped run writes none. Null: too little time is left to evaluate it. */
async function makeVersion(
  context: ConsolidateContext,
  run: ConsolidateRun,
  planned: Planned,
): Promise<{ readonly version: LearnedVersion; readonly lambda: number } | null> {
  const { versions, blobs, work } = context;
  const { plan, sets, earlier, active, serving, tracked, settings, lessons } = planned;
  const { tenant, loop, signal } = run;
  const before = serving?.parameters ?? null;
  const judges = await callJudges(work, plan, { ...sets, earlier }, before, run.limitMs);
  const common = { line: adapterLine(run.model.id), loop };
  const refuse = async (reason: string, metrics: LearnedVersion['metrics']) => {
    const nothing = { isAccepted: false, blobs: {}, contents: { lessons }, learnedFrom: [] };
    return { version: await versions.add(tenant, { ...common, ...nothing, reason, metrics }), lambda: tracked.lambda };
  };
  const trained = await train(context, run, planned, judges).catch((error: unknown) => {
    if (isBroken(error)) return error.message;
    throw error;
  });
  if (typeof trained === 'string') return refuse(trained, {});
  const { parameters, share } = await goAsFar(work, plan, judges.tuning, before, trained);
  const heldOut = await judge(work, plan, judges.heldOut, parameters);
  const validated = await validate(context, run, planned, share, heldOut.before.length);
  if (validated === null) return null;
  const wanted = { before: [...heldOut.before, ...validated.before], after: [...heldOut.after, ...validated.after] };
  const elsewhere = await judge(work, plan, judges.elsewhere, parameters);
  const numValidated = validated.before.length;
  const decision = decidePromotion(wanted, elsewhere, numValidated === 0 ? GATE_RULES : VALIDATED_RULES);
  const { isAccepted } = decision;
  const reason = decision.reason + (numValidated === 0 ? '' : `; ${numValidated} examples by cross-validation`);
  const metrics = { ...decision.metrics, cross_validated: numValidated };
  const forgetting = meanLosses(await judge(work, plan, judges.earlier, parameters));
  refuseStopped(signal);
  if (!isAccepted) return refuse(reason, { ...metrics, share });
  if (forgetting !== null && !Number.isFinite(forgetting.after)) return refuse('a loss of an earlier task is not a number', metrics); // prettier-ignore
  const { values: fisher, numSamples } = await currentFisher(context, planned, parameters);
  refuseStopped(signal);
  const { tasks, stream, boundariesMs, boundaryMs } = tracked;
  const lambda = adaptLambda(tracked.lambda, forgetting, settings);
  const { rank, numLayers } = plan;
  const ewc = { lambda, tasks, stream, boundariesMs, fisher };
  const kept = await putLearnedAdapter(blobs, tenant, { lessons, parameters, ewc, rank, numLayers });
  const trainedIds = sets.trained.map(({ requestId }) => requestId);
  const learnedFrom = newestIds([...(active?.learnedFrom ?? []), ...trainedIds], 50_000);
  const figures = {
    ...metrics,
    share,
    fisher_samples: numSamples,
    ewc_tasks: tasks.length,
    ewc_lambda: lambda,
    ewc_boundary: boundaryMs === null ? 0 : 1,
    ...(forgetting && { earlier_before: forgetting.before, earlier_after: forgetting.after }),
  };
  const note = boundaryMs === null ? '' : `; a new task began, finished tasks: ${tasks.length}, λ ${Math.round(lambda)}`; // prettier-ignore
  const version = await versions.add(tenant, { ...common, reason: reason + note, metrics: figures, ...kept, isAccepted, learnedFrom }); // prettier-ignore
  return { version, lambda };
}

/** Number of adapted layers of an untrained adapter; 0: the LM head. */
export const layersOf = ({ numParameters }: LearningModel, { numLayers }: ResolvedSonaOptions): number =>
  numParameters < MIN_LARGE ? numLayers : 0;

export function refuseStopped(signal: AbortSignal | null): void {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped before its version was written');
}

const plainExamples = (examples: Examples) =>
  examples.map(({ tokenIds, numPromptTokens, weight }) => [Array.from(tokenIds), numPromptTokens, weight ?? null]);

/** Why a run would repeat an earlier one; null: it would not. */
async function whyRepeated(
  versions: VersionLog,
  tenant: string,
  line: string,
  lessons: string,
  active: LearnedVersion | null,
): Promise<string | null> {
  // A version of peers that no longer serves says nothing about the own ratings that it had seen.
  const history = await versions.history(tenant, line, MAX_LOOKED_AT);
  const newest = history.find(({ version, learnedFrom }) => version === active?.version || !hasPeers(learnedFrom));
  if (newest === undefined || lessonsOf(newest) !== lessons) return null;
  if (newest.version === active?.version) return 'nothing was rated since the version that serves';
  const end = newest.isAccepted ? 'was made of the same and taken back' : `was refused: ${newest.reason}`;
  return `nothing was rated since version ${newest.version}, which ${end}`;
}

/** Rated and unrated requests as examples, the oldest first. */
export async function gather(
  { trajectories, options }: Pick<ConsolidateContext, 'trajectories' | 'options'>,
  { tenant, model }: Pick<ConsolidateRun, 'tenant' | 'model'>,
): Promise<ExampleSets> {
  const rated = await trajectories.find(tenant, { ...ratedOf(model.id), limit: options.maxExamples });
  const unrated = await trajectories.find(tenant, {
    conditions: [
      { field: 'model', is: '=', value: model.id },
      { field: 'verdict', is: '=', value: 'unknown' },
    ],
    limit: options.maxElsewhere,
  });
  // Oldest first: the order must not depend on the time of the run.
  return buildExamples(model, dropSuperseded(rated.toReversed()), unrated.toReversed());
}

function train(
  { work, checkpoints, services, options }: ConsolidateContext,
  { tenant, model, limitMs, numEpochs, signal }: ConsolidateRun,
  planned: Planned,
  judges: Judges,
): Promise<Float32Array> {
  const { plan, sets, active, tracked, lessons, budget } = planned;
  const { learningRate } = options;
  const { tasks, lambda } = tracked;
  const guessMs = judges.passMs === null ? null : GRADIENT_PASSES * judges.passMs;
  return trainInSlices(
    { work, checkpoints, now: () => services.now() },
    {
      tenant,
      line: adapterLine(model.id),
      runKey: hashText(
        services.sha256,
        JSON.stringify([plan, [lessons, active?.version ?? 0, tasks.length, lambda], numEpochs, learningRate, plainExamples(sets.avoid)]), // prettier-ignore
      ),
      job: jobOf(options, numEpochs, planned),
      sliceMs: Math.min(options.sliceMs, limitMs / MIN_SLICES),
      endMs: (gradientMs) => budget.trainingEndMs({ judgingMs: judges.afterMs, gradientMs: gradientMs ?? guessMs }),
      limitMs,
      signal,
    },
  );
}

const jobOf = (
  { learningRate }: ResolvedSonaOptions,
  numEpochs: number,
  { plan, sets, serving, tracked: { tasks, lambda } }: Planned,
) => {
  const avoid = sets.avoid.flatMap(({ samples = [] }) => samples.map(({ hidden }) => hidden));
  const parameters = serving?.parameters ?? null;
  return { plan, train: sets.train, parameters, tasks, lambda, avoid, numEpochs, learningRate, seed: 1 };
};

/** Cross-validates a small set (null: in the next run) in the LM head, where training is cheap: of 16 corrections only three are held out. */
async function validate(
  { work, options, services }: ConsolidateContext,
  { numEpochs }: ConsolidateRun,
  planned: Planned,
  share: number,
  numHeldOut: number,
): Promise<ShadowResult | null> {
  const { plan, fresh, validationEndMs: endMs } = planned;
  const nothing = { before: [], after: [] };
  if (plan.numLayers > 0 || numHeldOut >= MIN_HELD_OUT || fresh.length < MIN_HELD_OUT) return nothing;
  const job = jobOf(options, numEpochs, planned);
  const validated = await crossValidate(work, { job, share, fresh, endMs, now: () => services.now() });
  return validated ?? (numHeldOut < GATE_RULES.minExamples ? null : nothing);
}

/** The newest held-out examples of finished tasks. */
async function gatherEarlier(
  { trajectories, options }: ConsolidateContext,
  { tenant, model }: ConsolidateRun,
  { tasks, boundariesMs }: TrackedTasks,
): Promise<Examples> {
  if (tasks.length === 0 || boundariesMs.length === 0) return [];
  const rated = await trajectories.find(tenant, { ...ratedOf(model.id), toMs: boundariesMs.at(-1)!, limit: options.maxExamples }); // prettier-ignore
  return (await buildHeldOut(model, rated.toReversed())).slice(-MAX_EARLIER);
}

/** Fisher information of the examples since the last boundary. */
function currentFisher(
  { work, options }: ConsolidateContext,
  { plan, sets, budget, settings, tracked }: Planned,
  parameters: Float32Array,
): Promise<FisherOutcome> {
  const sinceMs = tracked.boundariesMs.at(-1) ?? 0;
  const current = sets.train.filter((_, i) => sets.trained[i]!.createdMs >= sinceMs);
  return work.fisher(plan, current.length === 0 ? sets.train : current, parameters, {
    numSamples: options.fisherSamples,
    timeLimitMs: budget.fisherLimitMs(),
    decay: settings.fisherDecay,
    floor: settings.fisherFloor,
  });
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function meanLosses({ before, after }: ShadowResult): EarlierLosses | null {
  return before.length === 0 ? null : { before: meanOf(before), after: meanOf(after) };
}
