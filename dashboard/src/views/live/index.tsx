import { useSignal } from '@preact/signals';
import type { LiveModel, LiveSnapshot, Percentiles } from '../../api/live.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Icon } from '../../components/icon.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { formatBytes, formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { formatDuration } from '../../format/time.ts';
import { modelLabel } from '../../format/model-label.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { Alerts } from './alerts.tsx';
import { Charts } from './charts.tsx';
import { filter, Filters, isSelected } from './filters.tsx';
import type { History } from './history.ts';
import './live.css';
import { PoolBar } from './pool-bar.tsx';
import { PrefixTreeCard } from './prefix-tree.tsx';
import { RequestsTable } from './requests-table.tsx';
import { useLive } from './use-live.ts';

const text = messages.live;

/** Live metrics of the server. */
export default function LiveView() {
  const { snapshot, history, error } = useLive();
  const now = snapshot.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.title}</h1>
          <p>{text.subtitle}</p>
        </div>
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {error.value !== null && (
        <p class="soft" role="status">
          {now === null ? text.reconnecting : text.reconnectingStale}
        </p>
      )}
      {now === null && error.value === null && <Loading label={text.loading} />}
      {now !== null && <Snapshot now={now} history={history.value} />}
    </div>
  );
}

function Snapshot({ now, history }: { now: LiveSnapshot; history: History }) {
  const tabId = useSignal<string | null>(null);
  // A model that was deleted selects all.
  const model = now.models.some(({ id }) => id === filter.value.model) ? filter.value.model : '';
  const models = now.models.filter(({ id }) => model === '' || id === model);
  const loadedModels = models.filter(({ engine }) => engine !== null);
  const openModel = loadedModels.find(({ id }) => id === tabId.value) ?? loadedModels[0];
  const requests = now.requests.filter((request) => isSelected(request, { ...filter.value, model }));
  const sum = (read: (one: LiveModel) => number | undefined): number =>
    models.reduce((total, one) => total + (read(one) ?? 0), 0);
  const note = model === '' ? text.allModels : visibleText(modelLabel(models[0]!, now.models));
  return (
    <>
      {now.is_closing && <Notice tone="warn">{text.closing}</Notice>}
      {(now.preparing ?? []).map((one) => (
        // Not announced: its value changes every second.
        <div key={one.part} class="notice" data-tone="info" data-preparing={one.part}>
          <Icon name="info" />
          <div>{preparingNote(one)}</div>
        </div>
      ))}
      <Alerts alerts={now.alerts} />
      <Filters models={now.models} requests={now.requests} />
      <dl class="tiles">
        <StatTile label={text.requests} value={formatCount(now.num_requests)} note={queueNote(now)} />
        <StatTile label={text.batchSize} value={formatCount(sum(({ engine }) => engine?.batch))} note={note} />
        <StatTile
          label={text.generatedRate}
          value={formatNumber(sum(({ tokens_per_second: rates }) => rates.generated))}
          note={note}
        />
        <StatTile
          label={text.promptRate}
          value={formatNumber(sum(({ tokens_per_second: rates }) => rates.prompt))}
          note={note}
        />
      </dl>
      <Charts history={history} model={model === '' ? null : model} />
      <section class="stack" aria-label={text.requests}>
        <h2>{text.requests}</h2>
        {requests.length === 0 ? (
          <p class="soft">{now.requests.length === 0 ? text.noRequests : text.noMatches}</p>
        ) : (
          <RequestsTable requests={requests} />
        )}
      </section>
      {openModel === undefined ? (
        <EmptyState icon="models" title={text.noModels}>
          <p>{text.noModelsHint}</p>
        </EmptyState>
      ) : (
        <Tabs
          label={text.models}
          tabs={loadedModels.map((one) => ({
            id: one.id,
            title: visibleText(modelLabel(one, loadedModels)),
            tooltip: visibleText(one.id),
          }))}
          selectedId={openModel.id}
          onSelect={(id) => (tabId.value = id)}
        >
          <ModelPanel model={openModel} windowSeconds={now.window_seconds} />
        </Tabs>
      )}
    </>
  );
}

function ModelPanel({ model, windowSeconds }: { model: LiveModel; windowSeconds: number }) {
  const cache = model.pool?.prefix_cache;
  const drafts = model.engine?.drafts;
  return (
    <div class="stack">
      <div class="live-charts">
        <section class="card" aria-label={text.latency}>
          <h2>{text.latencyInLast(formatCount(windowSeconds))}</h2>
          <table class="table live-latency">
            <thead>
              <tr>
                <td />
                <th class="end">p50</th>
                <th class="end">p90</th>
                <th class="end">p99</th>
                <th class="end">{text.samples}</th>
              </tr>
            </thead>
            <tbody>
              <LatencyRow name={text.firstToken} percentiles={model.first_token_ms} />
              <LatencyRow name={text.interToken} percentiles={model.inter_token_ms} />
            </tbody>
          </table>
          {drafts !== undefined && drafts.proposed > 0 && (
            <p class="small soft">
              {text.draftNote({
                accepted: drafts.accepted,
                share: formatShare(shareOf(drafts.accepted, drafts.proposed)),
              })}
            </p>
          )}
        </section>
        {model.pool !== null && (
          <section class="card" aria-label={text.pool}>
            <h2>{text.pool}</h2>
            <PoolBar pool={model.pool} />
            {cache !== undefined && (
              <p class="small soft">
                {text.cacheNote({
                  lookups: cache.lookups,
                  hitShare: formatShare(shareOf(cache.hits + cache.partial_hits, cache.lookups)),
                  savedTokens: cache.saved_tokens,
                  evictions: cache.evictions,
                })}
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

/** What the memory does without until its sentence encoder is there. */
function preparingNote({
  phase,
  done_bytes: doneBytes,
  reason,
}: NonNullable<LiveSnapshot['preparing']>[number]): string {
  if (phase === 'unavailable') return text.encoderUnavailable(reason === null ? '' : visibleText(reason));
  return text.encoderFollows(phase === 'download' ? formatBytes(doneBytes) : '');
}

function queueNote({ models, num_hidden: numHidden }: LiveSnapshot): string {
  const numQueued = models.reduce((sum, { engine }) => sum + (engine?.waiting ?? 0), 0);
  return [text.queued(numQueued), ...(numHidden > 0 ? [text.hidden(numHidden)] : [])].join(', ');
}
