import { RuvLLMError } from '../../core/errors.ts';
import { hashText, nameId } from '../../memory/common/ids.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { PolicyMemory } from '../../memory/policies/policies.ts';
import type { FieldCondition, JsonValue, MemoryStore } from '../../memory/types.ts';
import type { ReasoningBank } from '../reasoning-bank/bank.ts';
import { RERANKER_LINE } from '../graph-attention/reranker-store.ts';
import type { RerankTrainer } from '../rerank-training/rerank-trainer.ts';
import { hasPeers } from '../federation/peer-id.ts';
import { forgetRouters } from '../router-training/router-line.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import type { FloatBlobs } from '../versions/blobs.ts';
import type { VersionLog } from '../versions/version-log.ts';
import type { Checkpoints } from './checkpoint.ts';
import type { ConsolidateReport } from './consolidate.ts';
import type { ExaminedAnswers } from './examined.ts';
import { ADAPTER_PREFIX, adapterLine } from './learned-adapter.ts';
import type { MicroStore } from './micro-store.ts';
import type { Servings } from './serving.ts';
import type { LearningModel } from './types.ts';

export interface ForgetReport {
  readonly numTrajectories: number;
  /** Models that had learned from the requests, and what became of them. */
  readonly relearned: readonly { readonly model: string; readonly reason: string }[];
}

export interface ForgetContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly trajectories: Trajectories;
  readonly versions: VersionLog;
  readonly blobs: FloatBlobs;
  readonly policies: () => PolicyMemory;
  readonly micros: MicroStore;
  readonly checkpoints: Checkpoints;
  readonly examined: Pick<ExaminedAnswers, 'forget'>;
  readonly bank: ReasoningBank;
  readonly reranking: Pick<RerankTrainer, 'forget'>;
  readonly servings: Servings;
  model(id: string): LearningModel | null;
  inTurn<T>(tenant: string, modelId: string, run: () => Promise<T>): Promise<T>;
  /** Models that learn from single answers right now: the answers may be among those to forget. */
  adaptingModels(tenant: string): readonly string[];
  /** Trains from scratch on the remaining requests. */
  learnAnew(tenant: string, model: LearningModel): Promise<ConsolidateReport>;
  /** Repeats steps of loop A; returns how many changed something. */
  teachAgain(tenant: string, model: LearningModel, requestIds: readonly string[]): Promise<number>;
}

interface TakenOut {
  readonly isServing: boolean;
  /** Requests whose steps of loop A were dropped with those of the forgotten ones. */
  readonly toTeach: readonly string[];
  /** Older versions whose weights are gone. */
  readonly numOlder: number;
}

const NOTE_NAME = 'forgetting';

/** Deletes requests with everything learned from them; an interrupted deletion is completed at the next start. */
export function createForgetting(context: ForgetContext) {
  const { store, services, trajectories, versions, blobs, micros, checkpoints, bank, servings } = context;

  /** Written before anything is removed: after a crash the requests could no longer be found. */
  async function note(tenant: string, ids: readonly string[]): Promise<string> {
    const id = nameId(services.sha256, tenant, NOTE_NAME, hashText(services.sha256, JSON.stringify(ids)));
    await store.put([
      {
        id,
        tenant,
        kind: 'state',
        expiresMs: null,
        fields: { name: NOTE_NAME },
        body: { ids } as unknown as JsonValue,
        vector: null,
        space: null,
      },
    ]);
    return id;
  }

  async function modelsOf(tenant: string): Promise<ReadonlySet<string>> {
    const trained = (await versions.lines(tenant)).filter((line) => line.startsWith(ADAPTER_PREFIX));
    const names = trained.map((line) => line.slice(ADAPTER_PREFIX.length));
    // Before micros are read: a step that ends meanwhile is in one of the two.
    const adapting = context.adaptingModels(tenant);
    return new Set([...names, ...adapting, ...(await micros.models(tenant))]);
  }

  /** Deactivates and deletes what learned from them; null: nothing did. */
  async function takeOut(tenant: string, modelId: string, gone: ReadonlySet<string>): Promise<TakenOut | null> {
    const line = adapterLine(modelId);
    const kept = await micros.get(tenant, modelId);
    const isMicro = kept?.learnedFrom.some((id) => gone.has(id)) === true;
    const history = await versions.history(tenant, line, 1000);
    const isStained = (learnedFrom: readonly string[]): boolean => learnedFrom.some((id) => gone.has(id));
    const stained = history.filter(({ learnedFrom }) => isStained(learnedFrom));
    // A stopped run may have read them even if no version did.
    await checkpoints.delete(tenant, line);
    if (stained.length === 0 && !isMicro) return null;
    const active = await versions.active(tenant, line);
    const isServing = stained.some(({ version }) => version === active?.version);
    if (isMicro || isServing) await servings.dropMicro(tenant, modelId);
    if (isServing) await versions.rollback(tenant, line, 0);
    // Versions share anchors: those that a remaining version needs stay.
    const needed = new Set(history.filter((one) => !stained.includes(one)).flatMap((one) => Object.values(one.blobs)));
    for (const { blobs: names } of stained) {
      for (const blob of Object.values(names)) if (!needed.has(blob)) await blobs.delete(tenant, blob);
    }
    servings.expire(tenant, modelId);
    const toTeach = isMicro || isServing ? (kept?.learnedFrom ?? []).filter((id) => !gone.has(id)) : [];
    return { isServing, toTeach, numOlder: isServing ? stained.length - 1 : stained.length };
  }

  async function relearn(tenant: string, modelId: string, gone: ReadonlySet<string>): Promise<string | null> {
    // Deactivated first: after a crash in between the forgotten requests do not serve.
    const taken = await takeOut(tenant, modelId, gone);
    if (taken === null) return null;
    const { isServing, toTeach, numOlder } = taken;
    const model = context.model(modelId);
    if (model === null)
      return 'the model is not loaded: the base model will answer, and can learn again from the remaining requests';
    await servings.renew(tenant, model);
    if (isServing) {
      const { reason, version } = await context.learnAnew(tenant, model);
      if (version?.isAccepted) return `learned again from the remaining requests: ${reason}`;
      const numTaught = await context.teachAgain(tenant, model, toTeach);
      const beside =
        numTaught === 0 ? 'answers as the base model' : `keeps ${numTaught} single answers on top of the base model`;
      return `the model ${beside}: ${reason}`;
    }
    const numTaught = await context.teachAgain(tenant, model, toTeach);
    const older = numOlder === 0 ? '' : `; ${numOlder} older versions cannot be restored`;
    return `single answers were learned again from ${numTaught} of them${older}`;
  }

  async function withdraw(tenant: string, modelId: string, gone: ReadonlySet<string>): Promise<string | null> {
    const taken = await takeOut(tenant, modelId, gone);
    if (taken === null) return null;
    const { isServing, toTeach, numOlder } = taken;
    if (!isServing) return `${numOlder} older versions were deleted`;
    const line = adapterLine(modelId);
    const own = (await versions.history(tenant, line, 1000)).find(({ isAccepted, learnedFrom }) => isAccepted && !hasPeers(learnedFrom)); // prettier-ignore
    if (own !== undefined) await versions.rollback(tenant, line, own.version);
    const what = own === undefined ? 'the model answers as in its file' : `version ${own.version} serves, which learned from this node alone`; // prettier-ignore
    const model = context.model(modelId);
    if (model === null) return `${what}, as soon as the model is loaded`;
    await servings.renew(tenant, model);
    await context.teachAgain(tenant, model, toTeach);
    return what;
  }

  return {
    async forget(tenant: string, conditions: readonly FieldCondition[]): Promise<ForgetReport> {
      const notes: string[] = [];
      // Trajectories expire after 30 days; versions that learned from them are still found by request id.
      const named = conditions.flatMap((one) => {
        if (one.field !== 'requestId') return [];
        return one.is === '=' ? [String(one.value)] : one.is === 'in' ? one.values.map(String) : [];
      });
      if (named.length > 0) notes.push(await note(tenant, named));
      const removed = await trajectories.remove(tenant, conditions, async (ids) => void notes.push(await note(tenant, ids))); // prettier-ignore
      const gone = new Set([...named, ...removed]);
      const relearned: { model: string; reason: string }[] = [];
      if (removed.length > 0) await bank.rebuild(tenant);
      if (gone.size > 0) {
        // Before anything is learned again, which computes those of the remaining requests.
        await context.examined.forget(tenant);
        for (const model of await modelsOf(tenant)) {
          const reason = await context.inTurn(tenant, model, () => relearn(tenant, model, gone));
          if (reason !== null) relearned.push({ model, reason });
        }
        relearned.push(...(await forgetRouters(context, tenant, gone)));
        const ranking = await context.reranking.forget(tenant, gone);
        if (ranking !== null) relearned.push({ model: RERANKER_LINE, reason: ranking });
      }
      await store.delete(tenant, notes);
      return { numTrajectories: removed.length, relearned };
    },
    /** Deletes versions that learned from peers, and serves the newest of this node alone. */
    async withdrawPeers(tenant: string, peerIds: readonly string[]): Promise<ForgetReport['relearned']> {
      const gone = new Set(peerIds);
      // As for requests: after a crash the next start completes it.
      const noted = await note(tenant, peerIds);
      const withdrawn: { model: string; reason: string }[] = [];
      for (const model of await modelsOf(tenant)) {
        const reason = await context.inTurn(tenant, model, () => withdraw(tenant, model, gone));
        if (reason !== null) withdrawn.push({ model, reason });
      }
      await store.delete(tenant, [noted]);
      return withdrawn;
    },
    /** Completes interrupted deletions; the loops learn from the remaining requests when they are due. */
    async finish(tenant: string): Promise<void> {
      const filter = { fields: [{ field: 'name', is: '=', value: NOTE_NAME }] } as const;
      const { records } = await store.find(tenant, { kinds: ['state'], filter, order: 'oldest', limit: 1000 });
      if (records.length === 0) return;
      const gone = new Set(records.flatMap(({ body }) => (body as unknown as { ids: readonly string[] }).ids));
      const conditions = [{ field: 'requestId', is: 'in', values: [...gone] }] as const;
      if (gone.size <= 1000) await trajectories.remove(tenant, conditions);
      await bank.rebuild(tenant);
      await context.examined.forget(tenant);
      for (const model of await modelsOf(tenant)) {
        await context.inTurn(tenant, model, () => takeOut(tenant, model, gone));
      }
      await forgetRouters(context, tenant, gone);
      await context.reranking.forget(tenant, gone);
      await store.delete(
        tenant,
        records.map(({ id }) => id),
      );
    },
  };
}

export function refusedVersion(version: number, reason: string): RuvLLMError {
  return new RuvLLMError('conflict', `version ${version} was refused, its weights were not kept: ${reason}`);
}
