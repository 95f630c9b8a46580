import { memoryOf } from '../../api/memory.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { client, hasPart } from '../../app/session.ts';
import type { ViewProps } from '../../app/views.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import './memory.css';
import { DocumentPage } from './document-page.tsx';
import { Documents } from './documents.tsx';
import { RecordList } from './record-list.tsx';
import { RecordPage } from './record-page.tsx';
import { Sessions } from './sessions.tsx';

const text = messages.memory;

/** The tenant's memory, or one record of it. */
export default function MemoryView({ path: [id, documentId] }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>{text.title}</h1>
        <EmptyState icon="memory" title={text.off}>
          <p>{text.offHint}</p>
        </EmptyState>
      </div>
    );
  }
  if (id === 'documents' && documentId !== undefined) return <DocumentPage key={documentId} id={documentId} />;
  return id === undefined ? <Overview /> : <RecordPage key={id} id={id} />;
}

const tab = sessionSignal('records');

function Overview() {
  const stats = useResource((signal) => memoryOf(client).stats(signal));
  const data = stats.data.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.title}</h1>
          <p>{text.subtitle}</p>
        </div>
      </div>
      {stats.error.value !== null && <ErrorNotice error={stats.error.value} onRetry={stats.reload} />}
      {data === null && stats.error.value === null && <Loading label={text.loading} />}
      {data !== null && (
        <>
          {data.isDegraded && <Notice tone="warn">{text.degraded}</Notice>}
          <dl class="tiles">
            <StatTile label={text.records} value={formatCount(sumOf(Object.values(data.numRecords)))} />
            <StatTile label={text.links} value={formatCount(data.numEdges)} />
            <StatTile
              label={text.vectors}
              value={formatCount(data.numVectors)}
              {...(data.embedder === null ? {} : { note: text.embedder(visibleText(data.embedder)) })}
            />
          </dl>
          <Tabs
            label={text.title}
            tabs={[
              { id: 'records', title: text.records },
              { id: 'documents', title: text.documents },
              { id: 'sessions', title: text.sessions },
            ]}
            selectedId={tab.value}
            onSelect={(id) => (tab.value = id)}
          >
            {tab.value === 'records' && <RecordList stats={data} onChange={stats.reload} />}
            {tab.value === 'documents' && <Documents onChange={stats.reload} />}
            {tab.value === 'sessions' && <Sessions />}
          </Tabs>
        </>
      )}
    </div>
  );
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
