import { memoryOf } from '../../api/memory.ts';
import { keptSignal } from '../../app/kept-signal.ts';
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
import { RecordList } from './record-list.tsx';
import { RecordPage } from './record-page.tsx';
import { Sessions } from './sessions.tsx';

/** What is remembered: all of it, or one record. */
export default function MemoryView({ path: [id] }: ViewProps) {
  if (!hasPart('memory')) {
    return (
      <div class="page">
        <h1>Memory</h1>
        <EmptyState icon="memory" title="Nothing is remembered">
          <p>This server runs without a memory (--no-memory).</p>
        </EmptyState>
      </div>
    );
  }
  return id === undefined ? <Overview /> : <RecordPage key={id} id={id} />;
}

const tab = keptSignal('records');

function Overview() {
  const stats = useResource((signal) => memoryOf(client).stats(signal));
  const known = stats.data.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Memory</h1>
          <p>What this server remembers for you, found by meaning.</p>
        </div>
      </div>
      {stats.error.value !== null && <ErrorNotice error={stats.error.value} onRetry={stats.reload} />}
      {known === null && stats.error.value === null && <Loading what="Counting" />}
      {known !== null && (
        <>
          {known.isDegraded && (
            <Notice tone="warn">The memory is degraded: what is new may be lost at a restart.</Notice>
          )}
          <dl class="tiles">
            <StatTile label="Records" value={formatCount(sumOf(Object.values(known.numRecords)))} />
            <StatTile label="Links" value={formatCount(known.numEdges)} />
            <StatTile label="Vectors" value={formatCount(known.numVectors)} note={visibleText(known.space ?? '')} />
          </dl>
          <Tabs
            label="Parts of the memory"
            tabs={[
              { id: 'records', title: 'Records' },
              { id: 'sessions', title: 'Sessions' },
            ]}
            chosen={tab.value}
            onChoose={(chosen) => (tab.value = chosen)}
          >
            {tab.value === 'records' ? <RecordList stats={known} onChange={stats.reload} /> : <Sessions />}
          </Tabs>
        </>
      )}
    </div>
  );
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);
