import { learningOf } from '../../api/learning.ts';
import { keptSignal } from '../../app/kept-signal.ts';
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

const EVERY_MS = 5000;
const TABS = [
  { id: 'versions', title: 'Versions' },
  { id: 'curves', title: 'Curves' },
  { id: 'routing', title: 'Router' },
];

const tab = keptSignal('versions');

/** What feedback taught, what of it serves, and how it came about. */
export default function LearningView() {
  const isThere = hasPart('learning');
  const status = useResource((signal) => (isThere ? learningOf(client).status(signal) : Promise.resolve(null)), [], {
    everyMs: isThere ? EVERY_MS : null,
  });
  const known = status.data.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Learning</h1>
          <p>What feedback taught the models: each step measured on answers it did not see, and reversible.</p>
        </div>
      </div>
      {!isThere && (
        <EmptyState icon="learning" title="This server does not learn">
          <p>It was started with --no-learning or --no-memory.</p>
        </EmptyState>
      )}
      {isThere && status.error.value !== null && <ErrorNotice error={status.error.value} onRetry={status.reload} />}
      {isThere && known === null && status.error.value === null && <Loading what="Asking" />}
      {known !== null && (
        <>
          <dl class="tiles">
            <StatTile label="Judged good" value={formatCount(known.numRequests['success'] ?? 0)} note="answers" />
            <StatTile label="Judged poor" value={formatCount(known.numRequests['failure'] ?? 0)} note="answers" />
            <StatTile label="Not judged" value={formatCount(known.numRequests['unknown'] ?? 0)} note="answers" />
            <StatTile label="Patterns" value={formatCount(known.numPatterns)} note="of rated requests" />
          </dl>
          <Tabs label="Parts of learning" tabs={TABS} chosen={tab.value} onChoose={(id) => (tab.value = id)}>
            {tab.value === 'versions' && <Versions status={known} onChange={status.reload} />}
            {tab.value === 'curves' && <Curves />}
            {tab.value === 'routing' && <Routing />}
          </Tabs>
        </>
      )}
    </div>
  );
}
