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
import './memory.css';
import { DocumentPage } from './document-page.tsx';
import { Documents } from './documents.tsx';
import { RecordList } from './record-list.tsx';
import { RecordPage } from './record-page.tsx';
import { Sessions } from './sessions.tsx';

/** The tenant's memory, or one record of it. */
export default function MemoryView({ path: [id, documentId] }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>Memory</h1>
        <EmptyState icon="memory" title="Memory is off">
          <p>This server was started with --no-memory.</p>
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
          <h1>Memory</h1>
          <p>Records, documents and sessions stored for your tenant, with semantic search.</p>
        </div>
      </div>
      {stats.error.value !== null && <ErrorNotice error={stats.error.value} onRetry={stats.reload} />}
      {data === null && stats.error.value === null && <Loading label="Loading memory" />}
      {data !== null && (
        <>
          {data.isDegraded && <Notice tone="warn">The memory is degraded: new records may be lost on restart.</Notice>}
          <dl class="tiles">
            <StatTile label="Records" value={formatCount(sumOf(Object.values(data.numRecords)))} />
            <StatTile label="Links" value={formatCount(data.numEdges)} />
            <StatTile label="Vectors" value={formatCount(data.numVectors)} note={visibleText(data.space ?? '')} />
          </dl>
          <Tabs
            label="Memory"
            tabs={[
              { id: 'records', title: 'Records' },
              { id: 'documents', title: 'Documents' },
              { id: 'sessions', title: 'Sessions' },
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
