import { type AuditQuery, type AuditRow, auditOf } from '../../api/audit.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { goTo } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { usePages } from '../../components/use-pages.ts';
import { VirtualTable } from '../../components/virtual-table.tsx';
import { formatCountOf } from '../../format/numbers.ts';
import { ChainCheck } from './chain-check.tsx';
import { COLUMNS, SIMILARITY } from './columns.tsx';
import { SearchForm } from './search-form.tsx';

const audit = auditOf(client);
const query = sessionSignal<AuditQuery>({});

/** The requests that match the search, loaded page by page while scrolling. */
export function RequestList() {
  const pages = usePages<AuditRow>(
    async (after, signal) => {
      const { entries, next } = await audit.search(query.value, after, signal);
      return { rows: entries, next };
    },
    [query.value],
  );
  const rows = pages.rows.value;
  const isEmpty = rows.length === 0 && !pages.isLoading.value && pages.error.value === null;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Audit log</h1>
          <p>Every request with its answer or error, in a tamper-evident hash chain.</p>
        </div>
        <ChainCheck />
      </div>
      <SearchForm onSearch={(newQuery) => (query.value = newQuery)} />
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {isEmpty && (
        <EmptyState icon="audit" title="No requests match these filters">
          <p>Change the filters, or send a request to a model.</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <>
          <p class="soft small" role="status">
            {formatCountOf(rows.length, 'request')}
            {pages.isAtEnd.value ? '' : ', scroll to load more'}
          </p>
          <VirtualTable
            label="Requests"
            rows={rows}
            columns={query.value.similarTo === undefined ? COLUMNS : [SIMILARITY, ...COLUMNS]}
            keyOf={({ id }) => id}
            onOpen={({ entry }) => goTo('audit', entry.requestId)}
            onEnd={pages.loadMore}
            height={560}
            minWidth={900}
          />
        </>
      )}
      {pages.isLoading.value && <Loading label="Searching" />}
    </div>
  );
}
