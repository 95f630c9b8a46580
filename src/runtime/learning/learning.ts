import { createAdapter } from '../../adapters/index.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { nameId } from '../../memory/common/ids.ts';
import type { Schedule } from '../../memory/common/services.ts';
import type { Memory } from '../../memory/memory.ts';
import { type Trajectory, trajectoryName } from '../../memory/schemas/trajectory.ts';
import { createSona, type InstantReport, type Sona } from '../../learning/sona/sona.ts';
import type { SonaOptions } from '../../learning/sona/options.ts';
import type { LearningModel, LearningWork } from '../../learning/sona/types.ts';
import {
  createTrajectories,
  type GivenFeedback,
  type NewTrajectory,
  type Trajectories,
} from '../../learning/trajectories/trajectories.ts';
import { createImplicitSignals, type HeardSignal, IMPLICIT_SCORES, IMPLICIT_WORDS } from './implicit-signals.ts';
import type { LearningPart } from './learning-part.ts';
import { createRateLimit } from './rate-limit.ts';
import { createTrajectoryKeeper } from './trajectory-keeper.ts';

/** Effect of a feedback. */
export interface FeedbackReceipt {
  readonly requestId: string;
  readonly verdict: Trajectory['verdict'];
  readonly quality: number | null;
  /** Result of the instant loop, which may still be running; never rejects. */
  readonly learned: Promise<InstantReport>;
}

/** Learns from requests and feedback, and adapts the models. */
export interface Learning {
  readonly sona: Sona;
  readonly trajectories: Trajectories;
  /** Work on the learning thread. */
  readonly work: LearningWork;
  /** Another part learns, too, and looks for itself whether it is due; until what comes back is called. */
  join(part: LearningPart): () => void;
  /** Those that joined. */
  parts(): readonly LearningPart[];
  /** A loaded model takes part until what comes back is called. */
  attach(model: LearningModel): () => void;
  /** Activates a tenant's learned adapter; takes time on the first call only. */
  prepare(tenant: string, modelId: string): Promise<void>;
  /** The models that take part now. */
  models(): readonly string[];
  /** A request that ended and is being written down: feedback on it waits until then. */
  expect(tenant: string, requestId: string, written: Promise<void>): void;
  /** Records a finished request without waiting. */
  observe(tenant: string, trajectory: NewTrajectory): void;
  /** A request whose client left in the middle of the answer: kept only where implicit signals are wanted. */
  observeStopped(tenant: string, trajectory: NewTrajectory): void;
  /** Patterns that a request used: they do not go for being idle. */
  noteUses(tenant: string, patternIds: readonly string[]): void;
  feedback(tenant: string, requestId: string, given: GivenFeedback): Promise<FeedbackReceipt>;
  /** Hears of requests just before they are forgotten, until what comes back is called: what is kept of them elsewhere must go, too. */
  beforeForget(heard: ForgetListener): () => void;
  /** Resolves when all that was observed is kept, and all single steps are taken. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export type ForgetListener = (tenant: string, requestIds: readonly string[]) => Promise<void>;

export interface LearningContext {
  readonly memory: Memory;
  readonly work: LearningWork;
  endWork(): Promise<void>;
  readonly schedule: Schedule;
  /** Called with errors from background work. */
  readonly report: (message: string) => void;
  readonly options?: SonaOptions;
  /** Whether asking again, asking differently and leaving say something of an answer. Default false. */
  readonly implicitFeedback?: boolean;
}

/** How often it is looked whether a loop is due. */
const LOOK_EVERY_MS = 60_000;
const FEEDBACK_LIMIT = { burst: 60, perMinute: 60 };

export function createLearning(context: LearningContext): Learning {
  const { memory, work, report, schedule } = context;
  const { store, services } = memory;
  const kept = createTrajectories(store, services);
  const forgetting = new Set<ForgetListener>();
  const trajectories: Trajectories = {
    ...kept,
    remove: (tenant, conditions, before) =>
      kept.remove(tenant, conditions, async (requestIds) => {
        for (const heard of forgetting) await heard(tenant, requestIds);
        await before?.(requestIds);
      }),
  };
  const models = new Map<string, LearningModel>();
  const sona = createSona({
    store,
    services,
    trajectories,
    work,
    policies: () => memory.policies,
    model: (id) => models.get(id) ?? null,
    createAdapter,
    report,
    ewcSettings: async (tenant) => (await memory.policies.get(tenant, 'ewc'))!.parameters,
    ...(context.options === undefined ? {} : { options: context.options }),
  });
  const keeper = createTrajectoryKeeper({ trajectories, foreground: memory.foreground, schedule, report });
  const signals = context.implicitFeedback === true ? createImplicitSignals() : null;
  const endReranking = memory.useRerank(sona.reranking.rerank);
  const limit = createRateLimit(() => services.now(), FEEDBACK_LIMIT);
  const prepared = new Map<string, Promise<void>>();
  const expected = new Map<string, Promise<void>>();
  const steps = new Set<Promise<unknown>>();
  const ending = new AbortController();
  const seen = new Map<string, { readonly tenant: string; readonly modelId: string }>();
  const others = new Set<LearningPart>();
  let isClosed = false;
  const keyOf = (tenant: string, id: string): string => JSON.stringify([tenant, id]);
  const recordIdOf = (tenant: string, requestId: string): string =>
    nameId(services.sha256, tenant, ...trajectoryName(requestId));
  const tell = (doing: string, error: unknown): void =>
    report(`${doing} failed: ${error instanceof Error ? error.message : String(error)}`);

  async function runDueLoops(): Promise<void> {
    await sona.uses.flush();
    for (const { tenant, modelId } of seen.values()) {
      if (isClosed || !models.has(modelId)) continue;
      const { signal } = ending;
      if (await sona.shouldTriggerDeep(tenant, modelId)) await sona.deepOptimize(tenant, modelId, { signal });
      else await sona.maybeBackground(tenant, modelId, { signal });
      await sona.reranking.maybeTrain(tenant, signal);
    }
    for (const part of others) if (!isClosed) await part.run(ending.signal);
  }

  /** Feedback that teaches nothing at once; null: it does. */
  async function whyNothing(
    tenant: string,
    { score, correction, usedSources = null }: GivenFeedback,
    before: Trajectory | null,
    after: Trajectory,
  ): Promise<string | null> {
    if (score === null && correction === null) return usedSources === null ? OF_COMMENT : OF_SOURCES;
    const isSame = before?.quality === after.quality && before.correction === after.correction;
    if (!isSame || !(await sona.taught(tenant, after.model)).includes(after.requestId)) return null;
    return 'nothing to learn: the same was said of this answer before, and is learned';
  }

  // An active adapter would outlive the erased tenant.
  const stay = memory.beforeErase(async (tenant) => {
    for (const [key, one] of seen) if (one.tenant === tenant) seen.delete(key);
    for (const model of models.keys()) prepared.delete(keyOf(tenant, model));
    signals?.forget(tenant);
    await sona.leaveTenant(tenant, [...models.keys()]);
  });

  /** Applies implicit feedback if there is no explicit feedback; later explicit feedback replaces it. */
  function suppose(tenant: string, { requestId, signal }: HeardSignal): void {
    const supposing = (async () => {
      await keeper.kept(tenant, requestId);
      const known = await trajectories.get(tenant, requestId);
      if (known === null || known.feedback.length > 0) return;
      const given = { score: IMPLICIT_SCORES[signal], correction: null, comment: IMPLICIT_WORDS[signal] };
      await trajectories.rate(tenant, requestId, { source: 'implicit', ...given });
    })().catch((error: unknown) => tell('keeping a signal', error));
    steps.add(supposing);
    void supposing.finally(() => steps.delete(supposing));
  }

  let cancel = (): void => {};
  let looping: Promise<void> = Promise.resolve();
  const plan = (): void => {
    cancel = schedule(() => {
      looping = runDueLoops()
        .catch((error: unknown) => {
          if (!isClosed) tell('learning', error);
        })
        .finally(() => {
          if (!isClosed) plan();
        });
    }, LOOK_EVERY_MS);
  };
  plan();

  return {
    sona,
    trajectories,
    work,
    join(part) {
      others.add(part);
      return () => void others.delete(part);
    },
    parts: () => [...others],
    attach(model) {
      models.set(model.id, model);
      return () => {
        if (models.get(model.id) !== model) return;
        models.delete(model.id);
        for (const key of prepared.keys()) if (key.endsWith(`,${JSON.stringify(model.id)}]`)) prepared.delete(key);
      };
    },
    models: () => [...models.keys()],
    expect(tenant, requestId, written) {
      const key = keyOf(tenant, requestId);
      const done = written.catch(() => {}).finally(() => expected.delete(key));
      expected.set(key, done);
    },
    prepare(tenant, modelId) {
      const key = keyOf(tenant, modelId);
      const known = prepared.get(key);
      if (known !== undefined) return known;
      const preparing = sona.restore(tenant, modelId).catch((error: unknown) => {
        // The model as it is in its file is better than none; the next request tries again.
        prepared.delete(key);
        tell('reading what was learned', error);
      });
      prepared.set(key, preparing);
      seen.set(key, { tenant, modelId });
      return preparing;
    },
    observe(tenant, trajectory) {
      const heard = signals?.notice(tenant, trajectory) ?? null;
      keeper.keep(tenant, trajectory);
      if (heard !== null) suppose(tenant, heard);
    },
    observeStopped(tenant, trajectory) {
      if (signals === null) return;
      keeper.keep(tenant, trajectory);
      suppose(tenant, { requestId: trajectory.requestId, signal: 'stop' });
    },
    noteUses: (tenant, patternIds) => sona.uses.note(tenant, patternIds),
    async feedback(tenant, requestId, given) {
      limit.take(tenant);
      const key = keyOf(tenant, requestId);
      await expected.get(key);
      await keeper.kept(tenant, requestId);
      const before = await trajectories.get(tenant, requestId);
      const after = await trajectories.rate(tenant, requestId, given);
      const { verdict, quality } = after;
      await memory.graph
        .rate(tenant, { id: recordIdOf(tenant, requestId), verdict, sources: after.retrieved })
        .catch((error: unknown) => tell('rating sources', error));
      const known = await whyNothing(tenant, given, before, after);
      if (known !== null) return { requestId, verdict, quality, learned: Promise.resolve(nothingOf(known)) };
      const learned = sona.instantAdapt(tenant, requestId).catch((error: unknown): InstantReport => {
        if (!(error instanceof RuvLLMError) || error.code !== 'not_loaded') tell('learning from one answer', error);
        const reason = error instanceof Error ? error.message : String(error);
        return nothingOf(reason);
      });
      steps.add(learned);
      void learned.finally(() => steps.delete(learned));
      return { requestId, verdict, quality, learned };
    },
    beforeForget(heard) {
      forgetting.add(heard);
      return () => void forgetting.delete(heard);
    },
    async settle() {
      await Promise.allSettled(expected.values());
      await keeper.settle();
      await Promise.allSettled(steps);
      await sona.uses.flush();
    },
    async close() {
      isClosed = true;
      cancel();
      stay();
      endReranking();
      // Without an abort a running loop would continue for minutes.
      ending.abort();
      await work.cancel().catch(() => {});
      await looping;
      await keeper.settle();
      await Promise.allSettled(steps);
      await sona.close();
      await context.endWork();
    },
  };
}

const OF_COMMENT = 'nothing to learn: a comment is kept, and not learned from';
const OF_SOURCES = 'nothing to learn at once: the deep loop learns from used sources which texts to show first';
const nothingOf = (reason: string): InstantReport => ({
  isApplied: false,
  reason,
  lossBefore: null,
  lossAfter: null,
  elapsedMs: 0,
  version: null,
});
