import { useSignal } from '@preact/signals';
import { modelEndpoints } from '../../api/models.ts';
import { permissions, api, client, hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { Adapters } from './adapters.tsx';
import { CachedModels } from './cached-models.tsx';
import { PlainList } from './plain-list.tsx';
import { PullDialog } from './pull-dialog.tsx';
import { Pulls } from '../../components/pulls.tsx';
import { ServedModels } from './served-models.tsx';
import { messages } from '../../messages/index.ts';

const text = messages.models;

const models = modelEndpoints(client);
/** Loading takes seconds, so this shows its progress. */
const REFRESH_MS = 2000;

/** Served models, models on the server's machine, and adapters. */
export default function ModelsView() {
  return (
    <div class="page">
      {permissions.value.operate ? <ManagedModels /> : <AvailableModels />}
      {permissions.value.admin && <Adapters />}
    </div>
  );
}

function ManagedModels() {
  const report = useResource(models.report, [], { everyMs: REFRESH_MS });
  const isPulling = useSignal(false);
  const canChange = permissions.value.admin;
  const data = report.data.value;
  return (
    <>
      <div class="page-head">
        <Title />
        {canChange && hasPart('catalog') && (
          <Button kind="primary" icon="download" onClick={() => (isPulling.value = true)}>
            {text.pullModel}
          </Button>
        )}
      </div>
      {report.error.value !== null && <ErrorNotice error={report.error.value} onRetry={report.reload} />}
      {data === null && report.error.value === null && <Loading label={text.loading} />}
      {data !== null && (
        <>
          <dl class="tiles">
            <StatTile
              label={text.loaded}
              value={formatCount(data.data.filter(({ state }) => state === 'loaded').length)}
              note={text.ofServed(formatCount(data.data.length))}
            />
            <StatTile
              label={text.memory}
              value={formatBytes(data.used_bytes)}
              note={data.budget_bytes === null ? text.noLimit : text.ofBudget(formatBytes(data.budget_bytes))}
            />
            {data.free_bytes !== null && <StatTile label={text.freeMemory} value={formatBytes(data.free_bytes)} />}
          </dl>
          <ServedModels list={data.data} canChange={canChange} onChanged={report.reload} />
          {hasPart('catalog') && <Pulls canChange={canChange} onEnded={report.reload} />}
          {data.cached !== null && <CachedModels list={data.cached} canChange={canChange} onChanged={report.reload} />}
        </>
      )}
      {isPulling.value && <PullDialog onClose={() => (isPulling.value = false)} />}
    </>
  );
}

/** The model list for keys without `operate` permission. */
function AvailableModels() {
  const list = useResource((signal) => api.models(signal), [], { everyMs: REFRESH_MS });
  return (
    <>
      <div class="page-head">
        <Title />
      </div>
      {list.error.value !== null && <ErrorNotice error={list.error.value} onRetry={list.reload} />}
      {list.data.value === null && list.error.value === null && <Loading label={text.loading} />}
      {list.data.value !== null && <PlainList list={list.data.value} />}
    </>
  );
}

function Title() {
  return (
    <div>
      <h1>{text.title}</h1>
      <p>{text.subtitle}</p>
    </div>
  );
}
