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
import { messages } from '../../messages/index.ts';
import { Charts } from './charts.tsx';
import './learning.css';
import { Lessons } from './lessons.tsx';
import { Routing } from './routing.tsx';
import { Versions } from './versions.tsx';

const text = messages.learning;
const REFRESH_MS = 5000;
const TABS = [
  { id: 'lessons', title: text.tabs.lessons },
  { id: 'versions', title: text.tabs.versions },
  { id: 'charts', title: text.tabs.charts },
  { id: 'routing', title: text.tabs.router },
];

const tab = sessionSignal('lessons');

/** What was learned from feedback, the trained versions with their metrics, and the router. */
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
          <h1>{text.title}</h1>
          <p>{text.subtitle}</p>
        </div>
      </div>
      {!isEnabled && (
        <EmptyState icon="learning" title={text.off}>
          <p>{text.offHint}</p>
        </EmptyState>
      )}
      {isEnabled && status.error.value !== null && <ErrorNotice error={status.error.value} onRetry={status.reload} />}
      {isEnabled && data === null && status.error.value === null && <Loading label={text.loading} />}
      {data !== null && (
        <>
          <dl class="tiles">
            <StatTile
              label={text.tiles.good}
              value={formatCount(data.numRequests['success'] ?? 0)}
              note={text.answers}
            />
            <StatTile
              label={text.tiles.bad}
              value={formatCount(data.numRequests['failure'] ?? 0)}
              note={text.answers}
            />
            <StatTile
              label={text.tiles.unrated}
              value={formatCount(data.numRequests['unknown'] ?? 0)}
              note={text.answers}
            />
            <StatTile
              label={text.tiles.corrections}
              value={formatCount(data.numCorrections)}
              note={text.correctionsNote}
            />
          </dl>
          <Tabs label={text.title} tabs={TABS} selectedId={tab.value} onSelect={(id) => (tab.value = id)}>
            {tab.value === 'lessons' && <Lessons onChange={status.reload} />}
            {tab.value === 'versions' && <Versions status={data} onChange={status.reload} />}
            {tab.value === 'charts' && <Charts />}
            {tab.value === 'routing' && <Routing />}
          </Tabs>
        </>
      )}
    </div>
  );
}
