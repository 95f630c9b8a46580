import type { EngineStats } from '../../runtime/lower-layers.ts';
import type { MetricRegistry, Sample } from './registry.ts';

type SharedStats = NonNullable<EngineStats['cache']['shared']>;
type Samples = readonly Sample[];

const SECOND_MS = 1000;
const one = (value: number): Samples => [{ labels: {}, value }];
const byLabel = (label: string, values: Readonly<Record<string, number>>): Samples =>
  Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));

/** Metrics of the storage that nodes share; no samples without one. */
const METRICS: readonly (readonly [
  name: string,
  help: string,
  kind: 'counter' | 'gauge',
  read: (stats: SharedStats) => Samples,
])[] = [
  [
    'ruvllm_shared_page_reads_total',
    'KV pages asked of the storage that nodes share: hit, miss, corrupt (deleted and computed) or failed.',
    'counter',
    (stats) =>
      byLabel('result', {
        hit: stats.numHits,
        miss: stats.numMisses,
        corrupt: stats.numCorrupt,
        failed: stats.numFailedReads,
      }),
  ],
  [
    'ruvllm_shared_page_writes_total',
    'KV pages written to the storage that nodes share, failed writes, and pages evicted before they could be written.',
    'counter',
    (stats) =>
      byLabel('result', { written: stats.numWrites, failed: stats.numFailedWrites, dropped: stats.numDropped }),
  ],
  [
    'ruvllm_shared_transfer_bytes_total',
    'Bytes of KV pages read from and written to the storage that nodes share.',
    'counter',
    (stats) => byLabel('direction', { read: stats.readBytes, write: stats.writtenBytes }),
  ],
  [
    'ruvllm_shared_transfer_seconds_total',
    'Time of these reads and writes, added up over pages that were on their way at once.',
    'counter',
    (stats) => byLabel('direction', { read: stats.readMs / SECOND_MS, write: stats.writeMs / SECOND_MS }),
  ],
  [
    'ruvllm_shared_requests_not_waiting_total',
    'Requests that computed pages themselves: skipped (computing was expected to be faster) or late (it became faster).',
    'counter',
    (stats) => byLabel('reason', { skipped: stats.numSkipped, late: stats.numLate }),
  ],
  [
    'ruvllm_shared_evictions_total',
    'KV pages that this node deleted because of the limit of the shared storage.',
    'counter',
    (stats) => one(stats.numEvictions),
  ],
  ['ruvllm_shared_pages_waiting', 'KV pages that wait to be written.', 'gauge', (stats) => one(stats.numWaiting)],
  [
    'ruvllm_shared_suspended',
    'Whether reads or writes are suspended after failures.',
    'gauge',
    (stats) => byLabel('direction', { read: Number(stats.isReadSuspended), write: Number(stats.isWriteSuspended) }),
  ],
  [
    'ruvllm_shared_bytes',
    'Bytes of all KV pages in the shared storage when this node last listed it, and those it wrote since.',
    'gauge',
    (stats) => (stats.sizeBytes === null ? [] : one(stats.sizeBytes)),
  ],
];

/** `samplesOf` adds the label of the model. */
export function addSharedGauges(
  registry: MetricRegistry,
  samplesOf: (read: (stats: EngineStats) => Samples) => () => Sample[],
): void {
  for (const [name, help, kind, read] of METRICS) {
    registry.gauge(name, help, samplesOf(({ cache }) => (cache.shared === null ? [] : read(cache.shared))), kind); // prettier-ignore
  }
}
