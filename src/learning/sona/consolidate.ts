import { RuvLLMError } from '../../core/errors.ts';
import { hashText } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import { decidePromotion } from '../gate/gate.ts';
import type { EwcTask } from '../ewc/ewc.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { LearnedVersion, VersionLog } from '../versions/version-log.ts';
import { MIN_FISHER_SAMPLES } from './adapter-work.ts';
import type { Checkpoints } from './checkpoint.ts';
import { buildExamples, type ExampleSets } from './examples.ts';
import { callJudges, goAsFar, isBroken, judge, type Judges } from './judges.ts';
import {
  adapterLine,
  getLearnedAdapter,
  type LearnedAdapter,
  lessonsOf,
  putLearnedAdapter,
} from './learned-adapter.ts';
import { createLoopBudget, type LoopBudget } from './loop-budget.ts';
import type { ResolvedSonaOptions } from './options.ts';
import { ewcOf, FIRST_LAMBDA, trainInSlices } from './train-slices.ts';
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
  /** Of all of it: gathering, training, judging and remembering. */
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

/** Tasks that EWC remembers. */
const MAX_TASKS = 10;
/** Pieces of a loop: what a crash costs at most. */
const MIN_SLICES = 4;
/** A gradient beside a loss, until one is measured: there, and back through what came in and what was added. */
const GRADIENT_PASSES = 3;

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
  const { fisherSamples } = options;
  const minFisherSamples = Math.min(fisherSamples, MIN_FISHER_SAMPLES);
  const { limitMs } = run;
  const budget = createLoopBudget(() => context.services.now(), startMs, { limitMs, fisherSamples, minFisherSamples });
  const stop = (): void => void work.cancel();
  run.signal?.addEventListener('abort', stop, { once: true });
  try {
    const version = await makeVersion(context, run, { plan, sets, active, serving, lessons, budget });
    // Not before: whoever dies on the way goes on from there.
    await context.checkpoints.delete(tenant, line);
    return report(version, version.reason);
  } finally {
    run.signal?.removeEventListener('abort', stop);
  }
}

interface Planned {
  readonly plan: AdapterPlan;
  readonly sets: ExampleSets;
  readonly active: LearnedVersion | null;
  readonly serving: LearnedAdapter | null;
  readonly lessons: string;
  readonly budget: LoopBudget;
}

/** Trains, judges and writes down what came of it; who stops it wants no version of it, however far it came. */
async function makeVersion(
  context: ConsolidateContext,
  run: ConsolidateRun,
  planned: Planned,
): Promise<LearnedVersion> {
  const { versions, blobs, work } = context;
  const { plan, sets, active, serving, lessons } = planned;
  const { tenant, loop, signal } = run;
  const before = serving?.parameters ?? null;
  const judges = await callJudges(work, plan, sets, before, run.limitMs);
  const common = { line: adapterLine(run.model.id), loop };
  const nothing = { isAccepted: false, blobs: {}, contents: { lessons }, learnedFrom: [] };
  const trained = await train(context, run, planned, judges).catch((error: unknown) => {
    if (isBroken(error)) return error.message;
    throw error;
  });
  if (typeof trained === 'string') return versions.add(tenant, { ...common, ...nothing, reason: trained, metrics: {} });
  const { parameters, share } = await goAsFar(work, plan, judges.tuning, before, trained);
  const wanted = await judge(work, plan, judges.heldOut, parameters);
  const elsewhere = await judge(work, plan, judges.elsewhere, parameters);
  const { isAccepted, reason, metrics } = decidePromotion(wanted, elsewhere);
  refuseStopped(signal);
  if (!isAccepted) return versions.add(tenant, { ...common, ...nothing, reason, metrics: { ...metrics, share } });
  const { tasks, numSamples } = await rememberTask(context, planned, parameters);
  refuseStopped(signal);
  const lambda = nextLambda(serving?.lambda ?? FIRST_LAMBDA, metrics['elsewhere_mean'] ?? 0);
  const { rank, numLayers } = plan;
  const kept = await putLearnedAdapter(blobs, tenant, { lessons, parameters, tasks, rank, numLayers, lambda });
  const learnedFrom = [...new Set([...(active?.learnedFrom ?? []), ...sets.trainedIds])].slice(-50_000);
  const figures = { ...metrics, share, fisher_samples: numSamples };
  return versions.add(tenant, { ...common, reason, metrics: figures, ...kept, isAccepted, learnedFrom });
}

function refuseStopped(signal: AbortSignal | null): void {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'learning was stopped before its version was written');
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

function train(
  { work, checkpoints, services, options }: ConsolidateContext,
  { tenant, model, limitMs, numEpochs, signal }: ConsolidateRun,
  { plan, sets, serving, active, lessons, budget }: Planned,
  judges: Judges,
): Promise<Float32Array> {
  const { learningRate } = options;
  const guessMs = judges.passMs === null ? null : GRADIENT_PASSES * judges.passMs;
  return trainInSlices(
    { work, checkpoints, now: () => services.now() },
    {
      tenant,
      line: adapterLine(model.id),
      runKey: hashText(
        services.sha256,
        JSON.stringify([plan, [lessons, active?.version ?? 0], numEpochs, learningRate]),
      ),
      job: { plan, train: sets.train, parameters: serving?.parameters ?? null, ...ewcOf(serving), numEpochs, learningRate, seed: 1 }, // prettier-ignore
      sliceMs: Math.min(options.sliceMs, limitMs / MIN_SLICES),
      endMs: (gradientMs) => budget.trainingEndMs({ judgingMs: judges.afterMs, gradientMs: gradientMs ?? guessMs }),
      limitMs,
      signal,
    },
  );
}

async function rememberTask(
  { work, options }: ConsolidateContext,
  { plan, sets, serving, budget }: Planned,
  parameters: Float32Array,
): Promise<{ readonly tasks: readonly EwcTask[]; readonly numSamples: number }> {
  const limits = { numSamples: options.fisherSamples, timeLimitMs: budget.fisherLimitMs() };
  const { values: fisher, numSamples } = await work.fisher(plan, sets.train, parameters, limits);
  const task: EwcTask = { anchor: parameters, fisher, lambda: serving?.lambda ?? FIRST_LAMBDA };
  return { tasks: [...(serving?.tasks ?? []), task].slice(-MAX_TASKS), numSamples };
}

/** Held tighter after a loss elsewhere, looser where nothing was lost; always from 100 to 15 000. */
function nextLambda(lambda: number, rise: number): number {
  return Math.min(15_000, Math.max(100, rise > 0.01 ? lambda * 1.1 : lambda * 0.9));
}
