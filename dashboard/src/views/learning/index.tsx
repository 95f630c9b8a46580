import { learningOf } from '../../api/learning.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { client, hasPart } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { Tabs } from '../../components/tabs.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { Curves } from './curves.tsx';
import './learning.css';
import { Routing } from './routing.tsx';
import { Versions } from './versions.tsx';

const REFRESH_MS = 5000;
const TABS = [
  { id: 'versions', title: 'Versions' },
  { id: 'curves', title: 'Curves' },
  { id: 'routing', title: 'Router' },
];

const tab = sessionSignal('versions');

/** The versions learned from feedback, their metrics, and the router. */
export default function LearningView() {
  const isEnabled = hasPart('learning');
  const status = useResource((signal) => (isEnabled ? learningOf(client).status(signal) : Promise.resolve(null)), [], {
    everyMs: isEnabled ? REFRESH_MS : null,
  });
  const data = status.data.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Learning</h1>
          <p>Versions learned from feedback, each tested on held-out answers and reversible.</p>
        </div>
      </div>
      {!isEnabled && (
        <EmptyState icon="learning" title="Learning is off">
          <p>This server was started with --no-learning or --no-memory.</p>
        </EmptyState>
      )}
      {isEnabled && status.error.value !== null && <ErrorNotice error={status.error.value} onRetry={status.reload} />}
      {isEnabled && data === null && status.error.value === null && <Loading label="Loading learning status" />}
      {data !== null && (
        <>
          <dl class="tiles">
            <StatTile label="Rated good" value={formatCount(data.numRequests['success'] ?? 0)} note="answers" />
            <StatTile label="Rated bad" value={formatCount(data.numRequests['failure'] ?? 0)} note="answers" />
            <StatTile label="Not rated" value={formatCount(data.numRequests['unknown'] ?? 0)} note="answers" />
            <StatTile label="Patterns" value={formatCount(data.numPatterns)} note="from rated requests" />
          </dl>
          <Tabs label="Learning" tabs={TABS} selectedId={tab.value} onSelect={(id) => (tab.value = id)}>
            {tab.value === 'versions' && <Versions status={data} onChange={status.reload} />}
            {tab.value === 'curves' && <Curves />}
            {tab.value === 'routing' && <Routing />}
          </Tabs>
        </>
      )}
    </div>
  );
}
