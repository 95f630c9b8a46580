import type { EngineStats } from '../../runtime/lower-layers.ts';
import type { Caller } from '../caller.ts';
import { readEngines } from '../metrics/engine-gauges.ts';
import type { EngineReading } from '../metrics/engine-reading.ts';
import { poolTiersOf } from '../metrics/pool-tiers.ts';
import { displayNameOf } from '../model-name.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import type { Services } from '../services.ts';
import type { LiveRequest } from '../../runtime/requests/live-requests.ts';
import { findAlerts } from './alerts.ts';
import { RATE_SECONDS, type RecentReading, WINDOW_SECONDS } from './recent-window.ts';

/** Maximum requests in a snapshot; the others are only counted. */
const MAX_REQUESTS = 512;

type SnapshotServices = Pick<
  Services,
  'nodeName' | 'models' | 'library' | 'admission' | 'metrics' | 'live' | 'history' | 'problems' | 'preparing' | 'clock'
>;

/** The current state for a caller. Requests of other tenants are only counted, except for administrators. */
export async function takeSnapshot(services: SnapshotServices, caller: Caller): Promise<object> {
  const { nodeName, models, admission, metrics, live, history, clock } = services;
  const engines = await readEngines(services);
  const isAdmin = caller.scopes.includes('admin');
  const all = live.list();
  const visible = all.filter(({ tenant }) => isAdmin || tenant === caller.tenant).slice(0, MAX_REQUESTS);
  const statuses = models.list();
  const localIds = new Set(statuses.map(({ id }) => id));
  const remoteIds = new Set(all.flatMap(({ model }) => (model === null || localIds.has(model) ? [] : [model])));
  return {
    object: 'live',
    node: nodeName,
    at: clock.wallClock(),
    window_seconds: WINDOW_SECONDS,
    rate_seconds: RATE_SECONDS,
    is_closing: admission.isLeaving,
    num_requests: admission.numRequests,
    /** Since the start: answers of the model API, and those with a status of 500 or above. */
    num_answered: history.totals().numRequests,
    num_failed: history.totals().numFailed,
    alerts: findAlerts({
      requests: all,
      engines,
      history,
      problems: services.problems(),
      nowMs: clock.wallClock(),
    }),
    preparing: services.preparing().map(({ part, phase, doneBytes, totalBytes, reason }) => ({
      part,
      phase,
      done_bytes: doneBytes,
      total_bytes: totalBytes,
      reason: isAdmin ? reason : null,
    })),
    num_hidden: all.length - visible.length,
    requests: visible.map((request) => ({
      ...writeRequest(request),
      /** Where it runs: this machine, or a remote candidate of the router. */
      node: request.model !== null && remoteIds.has(request.model) ? request.model : nodeName,
    })),
    models: statuses.map((status) => ({
      ...writeStatus(status),
      display_name: displayNameOf(status, services),
      ...writeRecent(metrics.recent(status.id)),
      ...writeEngine(status, engines),
    })),
    /** Remote engines with running requests. */
    remotes: [...remoteIds].map((id) => ({ id, ...writeRecent(metrics.recent(id)) })),
  };
}

const writeRequest = (request: LiveRequest) => ({
  id: request.id,
  tenant: request.tenant,
  asked_model: request.asked,
  model: request.model,
  state: request.state,
  prompt_tokens: request.promptTokens,
  cached_tokens: request.cachedTokens,
  tokens: request.numTokens,
  elapsed_ms: Math.round(request.elapsedMs),
  first_token_ms: request.firstTokenMs === null ? null : Math.round(request.firstTokenMs * 10) / 10,
});

const writeStatus = ({ id, aliases, state, numUsers, error }: ModelStatus) => ({
  id,
  aliases,
  state,
  num_users: numUsers,
  error,
});

const writeRecent = ({ tokensPerSecond, firstTokenMs, interTokenMs }: RecentReading) => ({
  tokens_per_second: tokensPerSecond,
  first_token_ms: firstTokenMs,
  inter_token_ms: interTokenMs,
});

/** Null if the model is not loaded or its engine does not respond in time. */
function writeEngine({ id, model }: ModelStatus, engines: readonly EngineReading[]) {
  const stats = engines.find((engine) => engine.id === id)?.stats ?? null;
  if (stats === null || model === null) return { engine: null, pool: null };
  const { numRunning, numWaiting, numSteps, numComputedTokens, numGeneratedTokens, numPreemptions } = stats;
  return {
    engine: {
      batch: numRunning,
      waiting: numWaiting,
      steps: numSteps,
      computed_tokens: numComputedTokens,
      generated_tokens: numGeneratedTokens,
      preemptions: numPreemptions,
      refused: stats.numRefused,
      expired: stats.numExpired,
      adapters: stats.numAdapters,
      drafts: writeDrafts(stats),
    },
    pool: writePool(stats, model.modelInfo().kvPacking.precision),
  };
}

/** Tokens guessed ahead, of all sources together. */
function writeDrafts({ drafts }: EngineStats) {
  let [proposed, accepted] = [0, 0];
  for (const { numProposed, numAccepted } of Object.values(drafts)) {
    proposed += numProposed;
    accepted += numAccepted;
  }
  return { proposed, accepted };
}

function writePool(stats: EngineStats, packing: string | null) {
  const { cache } = stats;
  const { spill, shared } = cache;
  return {
    budget_bytes: cache.budgetBytes,
    used_bytes: cache.usedBytes,
    peak_bytes: cache.peakBytes,
    tiers: poolTiersOf(stats).map(({ tier, sizeBytes, numPages }) => ({
      tier,
      bytes: sizeBytes,
      num_pages: numPages,
      ...(tier === 'packed' ? { precision: packing } : {}),
    })),
    session_bytes: cache.sessionBytes,
    cached_pages: cache.numCachedPages,
    idle_pages: cache.numIdlePages,
    compression_ratio: cache.compressionRatio,
    disk:
      spill === null
        ? null
        : {
            bytes: spill.sizeBytes,
            limit_bytes: spill.limitBytes,
            num_pages: spill.numPages,
            waiting: spill.numWaiting,
          },
    shared:
      shared === null
        ? null
        : {
            hits: shared.numHits,
            misses: shared.numMisses,
            corrupt: shared.numCorrupt,
            written: shared.numWrites,
            failures: shared.numFailedReads + shared.numFailedWrites,
            read_bytes: shared.readBytes,
            written_bytes: shared.writtenBytes,
            bytes: shared.sizeBytes,
            limit_bytes: shared.limitBytes,
            waiting: shared.numWaiting,
            suspended: shared.isReadSuspended || shared.isWriteSuspended,
          },
    prefix_cache: {
      lookups: cache.numLookups,
      hits: cache.numHits,
      partial_hits: cache.numPartialHits,
      misses: cache.numMisses,
      saved_tokens: cache.savedTokens,
      evictions: cache.numEvictions,
    },
  };
}
