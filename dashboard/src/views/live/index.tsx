import { useSignal } from '@preact/signals';
import type { LiveModel, LiveSnapshot, Percentiles } from '../../api/live.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import type { History } from './history.ts';
import './live.css';
import { PoolBar } from './pool-bar.tsx';
import { PrefixTreeCard } from './prefix-tree.tsx';
import { RequestsTable } from './requests-table.tsx';
import { useLive } from './use-live.ts';

/** What the server does now. */
export default function LiveView() {
  const { snapshot, history, error } = useLive();
  const now = snapshot.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Live</h1>
          <p>What runs and waits, how fast, and what is kept, a second at a time.</p>
        </div>
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {error.value !== null && (
        <p class="soft" role="status">
          Trying again every two seconds{now === null ? '.' : '; these are the last figures that came.'}
        </p>
      )}
      {now === null && error.value === null && <Loading what="Waiting for the server" />}
      {now !== null && <Snapshot now={now} history={history.value} />}
    </div>
  );
}

function Snapshot({ now, history }: { now: LiveSnapshot; history: History }) {
  const chosen = useSignal<string | null>(null);
  const loaded = now.models.filter(({ engine }) => engine !== null);
  const model = loaded.find(({ id }) => id === chosen.value) ?? loaded[0];
  const last = (list: readonly number[]): number => list.at(-1) ?? 0;
  return (
    <>
      {now.is_closing && (
        <Notice tone="warn">The server is closing: what runs may finish, nothing new is let in.</Notice>
      )}
      <dl class="tiles">
        <StatTile label="Requests" value={formatCount(now.num_requests)} note={waitingNote(now)} />
        <StatTile label="In the batch" value={formatCount(last(history.batch))} />
        <StatTile label="Generated a second" value={formatNumber(last(history.generated))} note="tokens" />
        <StatTile label="Prompt a second" value={formatNumber(last(history.prompt))} note="tokens" />
      </dl>
      <div class="live-charts">
        <section class="card" aria-label="Speed">
          <h2>Tokens a second</h2>
          <LineChart
            label="Tokens a second of all models, generated and of prompts"
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
            label="Requests in the batch and waiting"
            isCount
            x={history.at}
            lines={[
              { label: 'in the batch', values: history.batch },
              { label: 'waiting', values: history.waiting },
            ]}
          />
        </section>
      </div>
      <section class="stack" aria-label="Requests">
        <h2>Requests</h2>
        {now.requests.length === 0 ? (
          <p class="soft">Nothing runs at the moment.</p>
        ) : (
          <RequestsTable requests={now.requests} />
        )}
      </section>
      {model === undefined ? (
        <EmptyState icon="models" title="No model is loaded">
          <p>The next request loads one.</p>
        </EmptyState>
      ) : (
        <Tabs
          label="Models"
          tabs={loaded.map(({ id }) => ({ id, title: visibleText(id) }))}
          chosen={model.id}
          onChoose={(id) => (chosen.value = id)}
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
                <th class="end">of</th>
              </tr>
            </thead>
            <tbody>
              <Latency name="First token" times={model.first_token_ms} />
              <Latency name="Between tokens" times={model.inter_token_ms} />
            </tbody>
          </table>
        </section>
        {model.pool !== null && (
          <section class="card" aria-label="Memory of the cache">
            <h2>Cache</h2>
            <PoolBar pool={model.pool} />
            {cache !== undefined && (
              <p class="small soft">
                {formatCount(cache.lookups)} lookups,{' '}
                {formatShare(shareOf(cache.hits + cache.partial_hits, cache.lookups))} found something;{' '}
                {formatCount(cache.saved_tokens)} tokens not computed again; {formatCount(cache.evictions)} pages given
                up
              </p>
            )}
          </section>
        )}
      </div>
      <PrefixTreeCard model={model.id} />
    </div>
  );
}

function Latency({ name, times }: { name: string; times: Percentiles | null }) {
  const cell = (value: number | undefined): string => (value === undefined ? '–' : formatDuration(value));
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="end">{cell(times?.p50)}</td>
      <td class="end">{cell(times?.p90)}</td>
      <td class="end">{cell(times?.p99)}</td>
      <td class="end">{formatCount(times?.count ?? 0)}</td>
    </tr>
  );
}

const shareOf = (part: number, whole: number): number => (whole > 0 ? part / whole : NaN);

function waitingNote({ models, num_hidden }: LiveSnapshot): string {
  const waiting = models.reduce((sum, { engine }) => sum + (engine?.waiting ?? 0), 0);
  return `${formatCount(waiting)} waiting${num_hidden > 0 ? `, ${formatCount(num_hidden)} of others` : ''}`;
}
