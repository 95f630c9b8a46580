import type { EngineStats, Memory } from '../../runtime/lower-layers.ts';
import { type Clock, within } from '../../core/clock.ts';
import type { Admission } from '../../runtime/requests/admission.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import { poolTiersOf } from './pool-tiers.ts';
import { createMetricRegistry } from './registry.ts';

/** The parts that are read for each scrape. */
export interface GaugeSources {
  readonly models: ModelHost;
  readonly admission: Admission;
  readonly memory: Memory | null;
  readonly clock: Clock;
}

/** What is read off each loaded engine: name, meaning, value. */
const GAUGES: readonly (readonly [name: string, help: string, read: (stats: EngineStats) => number])[] = [
  ['ruvllm_sequences_running', 'Sequences computed side by side: the batch.', (stats) => stats.numRunning],
  ['ruvllm_sequences_waiting', 'Sequences waiting for their turn.', (stats) => stats.numWaiting],
  ['ruvllm_pages', 'KV pages the budget holds.', (stats) => stats.numPages],
  ['ruvllm_pages_free', 'KV pages no running sequence needs.', (stats) => stats.numFreePages],
  ['ruvllm_steps', 'Steps computed since the model was loaded.', (stats) => stats.numSteps],
  ['ruvllm_rows_computed', 'Tokens computed since then, prompts included.', (stats) => stats.numComputedTokens],
  ['ruvllm_preemptions', 'Sequences put off to let others go on.', (stats) => stats.numPreemptions],
  ['ruvllm_sequences_refused', 'Sequences refused because too many waited.', (stats) => stats.numRefused],
  ['ruvllm_sequences_expired', 'Sequences that ran out of their own time.', (stats) => stats.numExpired],
  ['ruvllm_pool_bytes', 'Bytes of the pool in use.', (stats) => stats.cache.usedBytes],
  ['ruvllm_pool_budget_bytes', 'Bytes the pool may use.', (stats) => stats.cache.budgetBytes],
  ['ruvllm_pool_session_bytes', 'Those in pages of sessions.', (stats) => stats.cache.sessionBytes],
  ['ruvllm_spill_bytes', 'Bytes of KV pages on disk.', (stats) => stats.cache.spill?.sizeBytes ?? 0],
  ['ruvllm_pages_cached', 'Pages that later requests may share.', (stats) => stats.cache.numCachedPages],
];

/** One engine's numbers; null: it does not tell. */
export interface EngineReading {
  readonly id: string;
  readonly stats: EngineStats | null;
}

/** An engine answers between two steps; one that takes longer than this is left out. */
const STATS_WAIT_MS = 2000;

/** What every loaded engine says of itself now: for `/metrics` and the live view alike. */
export async function readEngines({ models, clock }: Pick<GaugeSources, 'models' | 'clock'>): Promise<EngineReading[]> {
  const loaded = models.list().flatMap(({ id, model }) => (model === null ? [] : [{ id, model }]));
  return Promise.all(loaded.map(({ id, model }) => readStats(id, clock, () => model.stats())));
}

/** The engines as they are now, in the text format of Prometheus. */
export async function writeEngineGauges({ models, admission, memory, clock }: GaugeSources): Promise<string> {
  const registry = createMetricRegistry();
  registry.gauge('ruvllm_requests_in_progress', 'Requests that generate now.', () => [
    { labels: {}, value: admission.numRequests },
  ]);
  if (memory !== null) {
    registry.gauge('ruvllm_memory_degraded', 'Whether the memory is kept in this process only.', () => [
      { labels: {}, value: memory.degraded() === null ? 0 : 1 },
    ]);
  }
  const all = models.list();
  registry.gauge('ruvllm_model_loaded', 'Whether a model is in memory.', () =>
    all.map(({ id, state }) => ({ labels: { model: id }, value: state === 'loaded' ? 1 : 0 })),
  );
  const engines = await readEngines({ models, clock });
  for (const [name, help, read] of GAUGES) {
    registry.gauge(name, help, () =>
      engines.flatMap(({ id, stats }) => (stats === null ? [] : [{ labels: { model: id }, value: read(stats) }])),
    );
  }
  registry.gauge(
    'ruvllm_pool_tier_bytes',
    'Bytes of the pool by what is in them; together they are those in use.',
    () =>
      engines.flatMap(({ id, stats }) =>
        stats === null
          ? []
          : poolTiersOf(stats).map(({ tier, sizeBytes }) => ({ labels: { model: id, tier }, value: sizeBytes })),
      ),
  );
  return registry.write();
}

/** An engine that is lost in this moment leaves its numbers out; the others are still told. */
async function readStats(id: string, clock: Clock, read: () => Promise<EngineStats>): Promise<EngineReading> {
  try {
    return { id, stats: (await within(clock, STATS_WAIT_MS, read()))?.value ?? null };
  } catch {
    return { id, stats: null };
  }
}
