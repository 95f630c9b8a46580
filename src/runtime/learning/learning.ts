import { createAdapter } from '../../adapters/index.ts';
import { isWholeTenant } from '../../core/erasure.ts';
import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Probe } from '../../learning/sona/probes.ts';
import { createSona, type InstantReport, type Sona } from '../../learning/sona/sona.ts';
import type { SonaOptions } from '../../learning/sona/options.ts';
import { adapterLine } from '../../learning/sona/learned-adapter.ts';
import type { LearningModel, LearningWork } from '../../learning/sona/types.ts';
import type { Feedback } from '../../learning/trajectories/feedback.ts';
import type { RatedTrajectory } from '../../learning/trajectories/trajectories.ts';
import { countLearned, eraseLearned } from './erase-learned.ts';
import { createFeedbackLog, type FeedbackLog, type FeedbackLogContext, skipLearning } from './feedback-log.ts';
import type { LearnedVersion } from '../../learning/versions/version-log.ts';
import type { LearningPart } from './learning-part.ts';

/** Learns from requests and feedback, and changes what the models answer, separately for each tenant. */
export interface Learning extends FeedbackLog {
  readonly sona: Sona;
  /** Computations on the learning thread. */
  readonly work: LearningWork;
  /** Adds another part that learns and checks itself whether it is due; returns a function that removes it. */
  join(part: LearningPart): () => void;
  parts(): readonly LearningPart[];
  /** Adds a loaded model; returns a function that removes it. */
  attach(model: LearningModel): () => void;
  /** Resolves when the learned weights of a tenant are in use; slow only the first time. */
  prepare(tenant: string, modelId: string): Promise<void>;
  /** The models that were attached. */
  models(): readonly string[];
  /** The file of an attached model; null: it is not attached. */
  pathOf(modelId: string): string | null;
  /** Serves an older version of a model, 0: its file; drops instant steps and recalls no corrections made since. */
  rollback(tenant: string, modelId: string, toVersion: number): Promise<RollbackReport>;
  /** Marks patterns as used, so that they are not removed as idle. */
  noteUses(tenant: string, patternIds: readonly string[]): void;
  close(): Promise<void>;
}

export interface RollbackReport {
  /** Null: the model of the file. */
  readonly serves: LearnedVersion | null;
  /** Corrections that are no longer recalled. */
  readonly numCorrections: number;
}

export interface LearningContext extends Omit<FeedbackLogContext, 'learn'> {
  readonly work: LearningWork;
  endWork(): Promise<void>;
  readonly options?: SonaOptions;
  /** Default: questions of everyday use, whose answers a step must not change. */
  readonly probes?: readonly Probe[];
}

/** How often the loops are checked. */
const CHECK_EVERY_MS = 60_000;

export function createLearning(context: LearningContext): Learning {
  const { memory, work, report, schedule } = context;
  const { store, services } = memory;
  const log = createFeedbackLog({ ...context, learn });
  const { trajectories } = log;
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
    ...(context.probes === undefined ? {} : { probes: context.probes }),
  });
  const endReranking = memory.useRerank(sona.reranking.rerank);
  const prepared = new Map<string, Promise<void>>();
  const ending = new AbortController();
  const seen = new Map<string, { readonly tenant: string; readonly modelId: string }>();
  const others = new Set<LearningPart>();
  let isClosed = false;
  const keyOf = (tenant: string, id: string): string => JSON.stringify([tenant, id]);
  const tell = (doing: string, error: unknown): void => report(`${doing} failed: ${messageOf(error)}`);

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

  /** Why feedback changes no weights at once; null: it does. */
  async function whyNothing(
    tenant: string,
    { score = null, thumbs = null, correction = null, usedSources = null }: Feedback,
    { before, after }: RatedTrajectory,
  ): Promise<string | null> {
    if (score === null && thumbs === null && correction === null) return usedSources === null ? OF_COMMENT : OF_SOURCES;
    const isSame = before.quality === after.quality && before.correction === after.correction;
    if (!isSame || !(await sona.taught(tenant, after.model)).includes(after.requestId)) return null;
    return 'nothing to learn: the same feedback on this answer is already learned';
  }

  async function learn(tenant: string, feedback: Feedback, rated: RatedTrajectory): Promise<InstantReport> {
    try {
      const reason = await whyNothing(tenant, feedback, rated);
      return reason === null ? await sona.instantAdapt(tenant, rated.after) : skipLearning(reason);
    } catch (error) {
      if (!(error instanceof RuvLLMError) || error.code !== 'not_loaded') tell('learning from one answer', error);
      return skipLearning(messageOf(error));
    }
  }

  // Adapters in use must not outlive what they learned from.
  const unregister = memory.erasure.register({
    name: 'learning',
    async erase(subject) {
      const { tenant } = subject;
      if (!isWholeTenant(subject)) {
        // A recent request may still be queued for the store, and would survive.
        await log.settle();
        return eraseLearned(sona, subject);
      }
      for (const [key, one] of seen) if (one.tenant === tenant) seen.delete(key);
      for (const model of models.keys()) prepared.delete(keyOf(tenant, model));
      await sona.leaveTenant(tenant, [...models.keys()]);
    },
    async count(subject) {
      if (!isWholeTenant(subject)) return countLearned(sona, memory, subject);
      // The memory counts what is in the store.
      return [...seen.values()].filter(({ tenant }) => tenant === subject.tenant).length;
    },
  });

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
    }, CHECK_EVERY_MS);
  };
  plan();

  return {
    ...log,
    sona,
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
    pathOf: (modelId) => models.get(modelId)?.path ?? null,
    prepare(tenant, modelId) {
      const key = keyOf(tenant, modelId);
      const known = prepared.get(key);
      if (known !== undefined) return known;
      const preparing = sona.restore(tenant, modelId).catch((error: unknown) => {
        // The plain model answers; the next request tries again.
        prepared.delete(key);
        tell('loading learned adapters', error);
      });
      prepared.set(key, preparing);
      seen.set(key, { tenant, modelId });
      return preparing;
    },
    async rollback(tenant, modelId, toVersion) {
      const line = adapterLine(modelId);
      const sinceMs = toVersion === 0 ? 0 : (await sona.versions.get(tenant, line, toVersion)).createdMs;
      const serves = await sona.rollback(tenant, modelId, toVersion);
      return { serves, numCorrections: await log.corrections.retire(tenant, modelId, sinceMs) };
    },
    noteUses: (tenant, patternIds) => sona.uses.note(tenant, patternIds),
    async settle() {
      await log.settle();
      await sona.uses.flush();
    },
    async close() {
      isClosed = true;
      cancel();
      unregister();
      endReranking();
      // Otherwise a loop would continue for minutes.
      ending.abort();
      await work.cancel().catch(() => {});
      await looping;
      await log.close();
      await sona.close();
      await context.endWork();
    },
  };
}

const OF_COMMENT = 'nothing to learn: a comment is only stored';
const OF_SOURCES = 'nothing to learn at once: the deep loop learns from used sources which texts to show first';
