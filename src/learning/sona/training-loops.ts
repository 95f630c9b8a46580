import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { MemoryStore } from '../../memory/types.ts';
import type { LearnedVersion } from '../versions/version-log.ts';
import { consolidate, type ConsolidateContext, type ConsolidateReport, type ConsolidateRun } from './consolidate.ts';
import type { PeerDelta } from '../federation/federation.ts';
import { ratedOf } from './examples.ts';
import { mergePeers } from './merge-peers.ts';
import type { InstantLoop } from './instant-loop.ts';
import { adapterLine } from './learned-adapter.ts';
import { type Servings, servingKey } from './serving.ts';
import type { LastRun, LearningModel, RunOptions, SonaStats } from './types.ts';

export interface TrainingLoopsContext extends ConsolidateContext {
  readonly store: MemoryStore;
  readonly servings: Servings;
  readonly instant: InstantLoop;
  readonly stats: { -readonly [K in keyof SonaStats]: SonaStats[K] };
}

const BACKGROUND_EPOCHS = 3;
const DEEP_EPOCHS = 10;
/** With fewer rated requests loop C learns no more than loop B. */
const MIN_DEEP = 50;

/** Runs of loops B and C for one model: what they train replaces what single answers taught. */
export function createTrainingLoops(context: TrainingLoopsContext) {
  const { store, services, versions, options, servings, instant, stats } = context;
  /** Stops the loops of a tenant that is about to be erased. */
  const stops = new Map<string, AbortController>();
  /** Results of the last run of each tenant and model since the start. */
  const lastRuns = new Map<string, LastRun>();
  /** When a loop that was due had nothing to do: it is due again after the usual interval. */
  const idleMs = new Map<string, number>();

  function signalOf(tenant: string, { signal }: RunOptions = {}): AbortSignal {
    const stop = stops.get(tenant) ?? new AbortController();
    stops.set(tenant, stop);
    return signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
  }

  async function run(
    tenant: string,
    model: LearningModel,
    plan: Pick<ConsolidateRun, 'loop' | 'limitMs' | 'numEpochs' | 'isFromScratch'>,
    given?: RunOptions,
  ): Promise<ConsolidateReport> {
    const signal = signalOf(tenant, given);
    const startMs = services.now();
    const note = (reason: string, isUnfinished: boolean): void => {
      const run = { loop: plan.loop, startMs, elapsedMs: services.now() - startMs, reason, isUnfinished };
      lastRuns.set(servingKey(tenant, model.id), run);
    };
    const report = await consolidate(context, { tenant, model, signal, ...plan })
      .catch((error: unknown) => {
        note(messageOf(error), false);
        throw error;
      })
      // The weights for training take as much memory as those that serve.
      .finally(() => context.work.release().catch(() => {}));
    note(report.reason, report.isUnfinished);
    await serve(tenant, model, report);
    return report;
  }

  /** Serves an accepted version instead of what single answers taught. */
  async function serve(tenant: string, model: LearningModel, report: ConsolidateReport): Promise<void> {
    if (report.version?.isAccepted) {
      stats.numAccepted++;
      const { learnedFrom } = await servings.of(tenant, model);
      // The version contains these steps: adding them again would count them twice.
      await servings.dropMicro(tenant, model.id);
      await servings.renew(tenant, model);
      // Held-out answers were not trained on: without this their corrections would be lost.
      const trained = new Set(report.version.learnedFrom);
      const missing = learnedFrom.filter((id) => !trained.has(id));
      await instant.teachAgain(tenant, model, missing);
    } else if (report.version !== null) stats.numRefused++;
  }

  function background(tenant: string, model: LearningModel, given?: RunOptions): Promise<ConsolidateReport> {
    stats.numBackground++;
    const limitMs = options.backgroundLimitMs;
    const plan = { loop: 'background', limitMs, numEpochs: BACKGROUND_EPOCHS, isFromScratch: false } as const;
    return run(tenant, model, plan, given);
  }

  async function dueBackground(tenant: string, model: LearningModel, given?: RunOptions): Promise<ConsolidateReport> {
    const wait = (): void => void idleMs.set(servingKey(tenant, model.id), services.now());
    try {
      const report = await background(tenant, model, given);
      if (report.version === null && !report.isUnfinished) wait();
      return report;
    } catch (error) {
      // A model too slow for the limit will be too slow in a minute.
      if (error instanceof RuvLLMError && error.code === 'deadline_exceeded') wait();
      throw error;
    }
  }

  async function lastRunMs(tenant: string, modelId: string, loop: LearnedVersion['loop'] | null): Promise<number> {
    const history = await versions.history(tenant, adapterLine(modelId));
    return history.find((version) => loop === null || version.loop === loop)?.createdMs ?? -Infinity;
  }

  const countRated = (tenant: string, modelId: string): Promise<number> =>
    store.count(tenant, { kinds: ['trajectory'], filter: { fields: ratedOf(modelId).conditions } });

  return {
    background,
    lastRun: (tenant: string, modelId: string): LastRun | null => lastRuns.get(servingKey(tenant, modelId)) ?? null,
    /** A scheduled run: one without a version is not due again before the next interval. */
    dueBackground,
    deep(tenant: string, model: LearningModel, limitMs: number, given?: RunOptions): Promise<ConsolidateReport> {
      return run(tenant, model, { loop: 'deep', limitMs, numEpochs: DEEP_EPOCHS, isFromScratch: false }, given);
    },
    /** Merges the adapters of peers with the own one. */
    async mergePeers(
      tenant: string,
      model: LearningModel,
      deltas: readonly PeerDelta[],
      given?: RunOptions,
    ): Promise<ConsolidateReport> {
      // prettier-ignore
      const { deepLimitMs: limitMs } = options;
      const run = { tenant, model, deltas, limitMs, signal: signalOf(tenant, given) };
      const report = await mergePeers(context, run).finally(() => context.work.release().catch(() => {}));
      await serve(tenant, model, report);
      return report;
    },
    /** Trains from the remaining requests, as if the deleted ones had never been. */
    learnAnew(tenant: string, model: LearningModel): Promise<ConsolidateReport> {
      const limitMs = options.deepLimitMs;
      return run(tenant, model, { loop: 'operator', limitMs, numEpochs: BACKGROUND_EPOCHS, isFromScratch: true });
    },
    async isBackgroundDue(tenant: string, modelId: string): Promise<boolean> {
      const idleSinceMs = idleMs.get(servingKey(tenant, modelId)) ?? -Infinity;
      const sinceMs = Math.max(await lastRunMs(tenant, modelId, null), idleSinceMs);
      if (services.now() - sinceMs < options.backgroundEveryMs) return false;
      return (await countRated(tenant, modelId)) >= options.minExamples;
    },
    async isDeepDue(tenant: string, modelId: string): Promise<boolean> {
      if (services.now() - (await lastRunMs(tenant, modelId, 'deep')) < options.deepEveryMs) return false;
      return (await countRated(tenant, modelId)) >= MIN_DEEP;
    },
    stopTenant(tenant: string, modelIds: readonly string[]): void {
      stops.get(tenant)?.abort();
      stops.delete(tenant);
      for (const modelId of modelIds) {
        idleMs.delete(servingKey(tenant, modelId));
        lastRuns.delete(servingKey(tenant, modelId));
      }
    },
  };
}
