import type { Clock } from '../../core/clock.ts';
import type { Memory } from '../../runtime/lower-layers.ts';
import type { ModelHost } from '../../runtime/requests/model-host.ts';
import { readEngines } from '../metrics/engine-gauges.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';

/** Rates are means of five seconds, so that no token is missed between two samples. */
export const SAMPLE_MS = 5000;
/** An hour. */
const MAX_SAMPLES = 720;

/** A model at the time of a sample; engine values are null if it is not loaded. */
export interface ModelSample {
  readonly generated: number;
  readonly prompt: number;
  readonly batch: number | null;
  readonly waiting: number | null;
  readonly usedBytes: number | null;
  readonly budgetBytes: number | null;
  /** Prefix cache lookups since the model was loaded, and those that found something. */
  readonly lookups: number | null;
  readonly hits: number | null;
}

/** Counts since the start of the server. */
export interface LiveTotals {
  /** Answered requests to the model API. */
  readonly numRequests: number;
  /** Those with a status of 500 or above. */
  readonly numFailed: number;
  /** Audit entries that were lost. */
  readonly numDropped: number;
}

export interface LiveSample {
  readonly atMs: number;
  readonly totals: LiveTotals;
  readonly models: ReadonlyMap<string, ModelSample>;
}

/** Samples of the last hour, taken whether or not anyone watches. */
export interface LiveHistory {
  /** Counts an answered request. */
  count(status: number): void;
  totals(): LiveTotals;
  /** The oldest first. */
  samples(): readonly LiveSample[];
  /** Free bytes on disk when the last sample was taken; null: not known. */
  freeDiskBytes(): number | null;
  close(): void;
}

export interface HistorySources {
  readonly models: ModelHost;
  readonly metrics: Pick<ServerMetrics, 'recent'>;
  readonly memory: Memory | null;
  readonly clock: Clock;
  readonly readFreeDisk: () => Promise<number | null>;
}

export function createLiveHistory({ models, metrics, memory, clock, readFreeDisk }: HistorySources): LiveHistory {
  const samples: LiveSample[] = [];
  let [numRequests, numFailed] = [0, 0];
  let freeDiskBytes: number | null = null;
  let isClosed = false;
  let cancel = (): void => {};

  function totals(): LiveTotals {
    const audit = memory?.audit.stats();
    return { numRequests, numFailed, numDropped: (audit?.numDropped ?? 0) + (audit?.numRefused ?? 0) };
  }

  async function sampleModels(): Promise<ReadonlyMap<string, ModelSample>> {
    const engines = await readEngines({ models, clock });
    const statsOf = new Map(engines.map(({ id, stats }) => [id, stats]));
    return new Map(
      models.list().map(({ id }) => {
        const { generated, prompt } = metrics.recent(id).tokensPerSecond;
        const stats = statsOf.get(id) ?? null;
        const cache = stats?.cache;
        return [
          id,
          {
            generated,
            prompt,
            batch: stats?.numRunning ?? null,
            waiting: stats?.numWaiting ?? null,
            usedBytes: cache?.usedBytes ?? null,
            budgetBytes: cache?.budgetBytes ?? null,
            lookups: cache?.numLookups ?? null,
            hits: cache === undefined ? null : cache.numHits + cache.numPartialHits,
          },
        ];
      }),
    );
  }

  async function take(): Promise<void> {
    const sampled = await sampleModels();
    freeDiskBytes = await readFreeDisk().catch(() => null);
    if (isClosed) return;
    samples.push({ atMs: clock.wallClock(), totals: totals(), models: sampled });
    if (samples.length > MAX_SAMPLES) samples.shift();
    schedule();
  }

  function schedule(): void {
    cancel = clock.setTimer(SAMPLE_MS, () => void take());
  }
  schedule();

  return {
    count(status) {
      numRequests++;
      if (status >= 500) numFailed++;
    },
    totals,
    samples: () => samples,
    freeDiskBytes: () => freeDiskBytes,
    close() {
      isClosed = true;
      cancel();
    },
  };
}

/** The history as columns, which are a third of the size of rows. */
export function writeHistory(history: Pick<LiveHistory, 'samples' | 'totals'>): object {
  const samples = history.samples();
  const ids = [...new Set(samples.flatMap(({ models }) => [...models.keys()]))];
  const column = (id: string, name: keyof ModelSample) => samples.map(({ models }) => models.get(id)?.[name] ?? null);
  return {
    object: 'live.history',
    interval_ms: SAMPLE_MS,
    at: samples.map(({ atMs }) => atMs),
    answered: samples.map(({ totals }) => totals.numRequests),
    failed: samples.map(({ totals }) => totals.numFailed),
    models: ids.map((id) => ({
      id,
      generated: column(id, 'generated'),
      prompt: column(id, 'prompt'),
      batch: column(id, 'batch'),
      waiting: column(id, 'waiting'),
      used_bytes: column(id, 'usedBytes'),
      budget_bytes: column(id, 'budgetBytes'),
      lookups: column(id, 'lookups'),
      hits: column(id, 'hits'),
    })),
  };
}
