import type { EngineStats, Memory } from '../../runtime/lower-layers.ts';
import { type Clock, within } from '../../core/clock.ts';
import type { Admission } from '../../runtime/requests/admission.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import { STATE_PARTS, type StateProblem } from '../state-problems.ts';
import { poolTiersOf } from './pool-tiers.ts';
import type { EngineReading } from './engine-reading.ts';
import { addGatewayAliases } from './gateway-aliases.ts';
import { addSharedGauges } from './shared-gauges.ts';
import { createMetricRegistry, type MetricFamily, type Sample } from './registry.ts';

/** Sources that are read for each scrape. */
export interface GaugeSources {
  readonly models: ModelHost;
  readonly admission: Admission;
  readonly memory: Memory | null;
  readonly batches: { readonly runner: { readonly numOpen: number; readonly numRunning: number } } | null;
  readonly problems: () => readonly StateProblem[];
  readonly clock: Clock;
}

/** Gauges of each loaded engine: name, help, value. */
const GAUGES: readonly (readonly [name: string, help: string, read: (stats: EngineStats) => number])[] = [
  ['ruvllm_sequences_running', 'Sequences in the batch.', (stats) => stats.numRunning],
  ['ruvllm_sequences_waiting', 'Sequences in the queue.', (stats) => stats.numWaiting],
  ['ruvllm_pages', 'KV pages that fit into the memory budget.', (stats) => stats.numPages],
  ['ruvllm_pages_free', 'KV pages not used by running sequences.', (stats) => stats.numFreePages],
  ['ruvllm_steps', 'Engine steps since the model was loaded.', (stats) => stats.numSteps],
  [
    'ruvllm_rows_computed',
    'Tokens computed since the model was loaded, including prompts.',
    (stats) => stats.numComputedTokens,
  ],
  ['ruvllm_preemptions', 'Preempted sequences since the model was loaded.', (stats) => stats.numPreemptions],
  ['ruvllm_sequences_refused', 'Sequences rejected because of limits.', (stats) => stats.numRefused],
  ['ruvllm_sequences_expired', 'Sequences that exceeded their deadline.', (stats) => stats.numExpired],
  ['ruvllm_pool_bytes', 'Bytes of the page pool in use.', (stats) => stats.cache.usedBytes],
  ['ruvllm_pool_budget_bytes', 'Memory budget of the page pool in bytes.', (stats) => stats.cache.budgetBytes],
  ['ruvllm_pool_session_bytes', 'Bytes of pages that sessions keep.', (stats) => stats.cache.sessionBytes],
  ['ruvllm_spill_bytes', 'Bytes of KV pages on disk.', (stats) => stats.cache.spill?.sizeBytes ?? 0],
  ['ruvllm_pages_cached', 'Pages in the prefix cache.', (stats) => stats.cache.numCachedPages],
];

/** Engines respond between two steps; slower ones are omitted. */
const STATS_WAIT_MS = 2000;

/** Statistics of all loaded engines, for `/metrics` and the live view. */
export async function readEngines({ models, clock }: Pick<GaugeSources, 'models' | 'clock'>): Promise<EngineReading[]> {
  const loaded = models.list().flatMap(({ id, model }) => (model === null ? [] : [{ id, model }]));
  return Promise.all(loaded.map(({ id, model }) => readStats(id, clock, () => model.stats())));
}

/** Current engine metrics. */
export async function readEngineGauges(sources: GaugeSources): Promise<readonly MetricFamily[]> {
  const { models, admission, memory, batches, clock } = sources;
  const registry = createMetricRegistry();
  registry.gauge('ruvllm_requests_in_progress', 'Running requests.', () => [
    { labels: {}, value: admission.numRequests },
  ]);
  if (memory !== null) {
    registry.gauge('ruvllm_memory_degraded', 'Whether the memory is degraded.', () => [
      { labels: {}, value: memory.degraded() === null ? 0 : 1 },
    ]);
  }
  registry.gauge('ruvllm_state_degraded', 'Whether a part of the state was lost, is damaged or is not stored.', () => {
    const parts = new Set(sources.problems().map(({ part }) => part));
    return STATE_PARTS.map((part) => ({
      labels: { part },
      value: parts.has(part) ? 1 : 0,
    }));
  });
  if (batches !== null) {
    registry.gauge('ruvllm_batches', 'Batches that have not ended, and those of them that run.', () => [
      { labels: { state: 'open' }, value: batches.runner.numOpen },
      { labels: { state: 'running' }, value: batches.runner.numRunning },
    ]);
  }
  const all = models.list();
  registry.gauge('ruvllm_model_loaded', 'Whether a model is loaded.', () =>
    all.map(({ id, state }) => ({ labels: { model: id }, value: state === 'loaded' ? 1 : 0 })),
  );
  registry.gauge(
    'ruvllm_engine_losses_total',
    'Engines that stalled or crashed and were replaced.',
    () => all.map(({ id, numLosses }) => ({ labels: { model: id }, value: numLosses })),
    'counter',
  );
  const engines = await readEngines({ models, clock });
  const samplesOf = (read: (stats: EngineStats) => readonly Sample[]) => (): Sample[] =>
    engines.flatMap(({ id, stats }) =>
      stats === null ? [] : read(stats).map(({ labels, value }) => ({ labels: { model: id, ...labels }, value })),
    );
  for (const [name, help, read] of GAUGES) {
    registry.gauge(name, help, samplesOf((stats) => [{ labels: {}, value: read(stats) }])); // prettier-ignore
  }
  registry.gauge(
    'ruvllm_pool_tier_bytes',
    'Bytes of the pool by tier; their sum is the bytes in use.',
    samplesOf((stats) => poolTiersOf(stats).map(({ tier, sizeBytes }) => ({ labels: { tier }, value: sizeBytes }))),
  );
  registry.gauge(
    'ruvllm_prefix_lookups_total',
    'Prefix cache lookups: hit (all whole pages of the prompt cached), partial (some tokens) or miss.',
    samplesOf(({ cache }) => [
      { labels: { result: 'hit' }, value: cache.numHits },
      { labels: { result: 'partial' }, value: cache.numPartialHits },
      { labels: { result: 'miss' }, value: cache.numMisses },
    ]),
    'counter',
  );
  registry.gauge(
    'ruvllm_draft_tokens_total',
    'Tokens guessed ahead, by source, and whether the model would have generated them.',
    samplesOf(({ drafts }) =>
      Object.entries(drafts).flatMap(([source, { numProposed, numAccepted }]) => [
        { labels: { source, result: 'accepted' }, value: numAccepted },
        { labels: { source, result: 'rejected' }, value: numProposed - numAccepted },
      ]),
    ),
    'counter',
  );
  registry.gauge(
    'ruvllm_prefix_evictions_total',
    'Pages evicted from the prefix cache.',
    samplesOf(({ cache }) => [{ labels: {}, value: cache.numEvictions }]),
    'counter',
  );
  addSharedGauges(registry, samplesOf);
  addGatewayAliases(registry, sources, engines);
  return registry.collect();
}

/** A lost engine must not hide the metrics of the others. */
async function readStats(id: string, clock: Clock, read: () => Promise<EngineStats>): Promise<EngineReading> {
  try {
    return { id, stats: (await within(clock, STATS_WAIT_MS, read()))?.value ?? null };
  } catch {
    return { id, stats: null };
  }
}
