import { useSignal } from '@preact/signals';
import type { LiveModel, LiveSnapshot, Percentiles } from '../../api/live.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { formatCount, formatCountOf, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { modelLabel } from '../../format/model-label.ts';
import { visibleText } from '../../format/visible-text.ts';
import type { History } from './history.ts';
import './live.css';
import { PoolBar } from './pool-bar.tsx';
import { PrefixTreeCard } from './prefix-tree.tsx';
import { RequestsTable } from './requests-table.tsx';
import { useLive } from './use-live.ts';

/** Live metrics of the server. */
export default function LiveView() {
  const { snapshot, history, error } = useLive();
  const now = snapshot.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Live</h1>
          <p>Running and queued requests, throughput and cache use, updated every second.</p>
        </div>
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {error.value !== null && (
        <p class="soft" role="status">
          Reconnecting every 2 s{now === null ? '.' : '; showing the last values received.'}
        </p>
      )}
      {now === null && error.value === null && <Loading label="Waiting for the server" />}
      {now !== null && <Snapshot now={now} history={history.value} />}
    </div>
  );
}

function Snapshot({ now, history }: { now: LiveSnapshot; history: History }) {
  const selectedId = useSignal<string | null>(null);
  const loadedModels = now.models.filter(({ engine }) => engine !== null);
  const model = loadedModels.find(({ id }) => id === selectedId.value) ?? loadedModels[0];
  const last = (list: readonly number[]): number => list.at(-1) ?? 0;
  return (
    <>
      {now.is_closing && (
        <Notice tone="warn">
          The server is shutting down: running requests may finish, new requests are rejected.
        </Notice>
      )}
      <dl class="tiles">
        <StatTile label="Requests" value={formatCount(now.num_requests)} note={queueNote(now)} />
        <StatTile label="Batch size" value={formatCount(last(history.batch))} note="all models" />
        <StatTile label="Generated tokens/s" value={formatNumber(last(history.generated))} note="all models" />
        <StatTile label="Prompt tokens/s" value={formatNumber(last(history.prompt))} note="all models" />
      </dl>
      <div class="live-charts">
        <section class="card" aria-label="Throughput">
          <h2>Tokens/s</h2>
          <LineChart
            label="Generated and prompt tokens per second, all models"
            x={history.at}
            lines={[
              { label: 'generated', values: history.generated },
              { label: 'prompt', values: history.prompt },
            ]}
          />
        </section>
        <section class="card" aria-label="Load">
          <h2>Batch and queue</h2>
          <LineChart
            label="Requests in the batch and in the queue"
            isCount
            x={history.at}
            lines={[
              { label: 'batch', values: history.batch },
              { label: 'queue', values: history.waiting },
            ]}
          />
        </section>
      </div>
      <section class="stack" aria-label="Requests">
        <h2>Requests</h2>
        {now.requests.length === 0 ? (
          <p class="soft">No running requests</p>
        ) : (
          <RequestsTable requests={now.requests} />
        )}
      </section>
      {model === undefined ? (
        <EmptyState icon="models" title="No models loaded">
          <p>The next request loads its model.</p>
        </EmptyState>
      ) : (
        <Tabs
          label="Models"
          tabs={loadedModels.map((one) => ({
            id: one.id,
            title: visibleText(modelLabel(one, loadedModels)),
            tooltip: visibleText(one.id),
          }))}
          selectedId={model.id}
          onSelect={(id) => (selectedId.value = id)}
        >
          <ModelPanel model={model} windowSeconds={now.window_seconds} />
        </Tabs>
      )}
    </>
  );
}

function ModelPanel({ model, windowSeconds }: { model: LiveModel; windowSeconds: number }) {
  const cache = model.pool?.prefix_cache;
  return (
    <div class="stack">
      <div class="live-charts">
        <section class="card" aria-label="Latency">
          <h2>Latency in the last {windowSeconds} s</h2>
          <table class="table live-latency">
            <thead>
              <tr>
                <td />
                <th class="end">p50</th>
                <th class="end">p90</th>
                <th class="end">p99</th>
                <th class="end">Samples</th>
              </tr>
            </thead>
            <tbody>
              <LatencyRow name="Time to first token" percentiles={model.first_token_ms} />
              <LatencyRow name="Inter-token latency" percentiles={model.inter_token_ms} />
            </tbody>
          </table>
        </section>
        {model.pool !== null && (
          <section class="card" aria-label="Page pool">
            <h2>Page pool</h2>
            <PoolBar pool={model.pool} />
            {cache !== undefined && (
              <p class="small soft">
                Prefix cache: {formatCountOf(cache.lookups, 'lookup')},{' '}
                {formatShare(shareOf(cache.hits + cache.partial_hits, cache.lookups))} hits;{' '}
                {formatCountOf(cache.saved_tokens, 'cached token')} reused; {formatCountOf(cache.evictions, 'page')}{' '}
                evicted
              </p>
            )}
          </section>
        )}
      </div>
      <PrefixTreeCard model={model.id} />
    </div>
  );
}

function LatencyRow({ name, percentiles }: { name: string; percentiles: Percentiles | null }) {
  const cell = (value: number | undefined): string => (value === undefined ? '–' : formatDuration(value));
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="end">{cell(percentiles?.p50)}</td>
      <td class="end">{cell(percentiles?.p90)}</td>
      <td class="end">{cell(percentiles?.p99)}</td>
      <td class="end">{formatCount(percentiles?.count ?? 0)}</td>
    </tr>
  );
}

const shareOf = (part: number, whole: number): number => (whole > 0 ? part / whole : NaN);

function queueNote({ models, num_hidden: numHidden }: LiveSnapshot): string {
  const numQueued = models.reduce((sum, { engine }) => sum + (engine?.waiting ?? 0), 0);
  return `${formatCount(numQueued)} queued${numHidden > 0 ? `, ${formatCount(numHidden)} of other tenants` : ''}`;
}
