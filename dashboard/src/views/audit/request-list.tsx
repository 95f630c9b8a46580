import { type AuditQuery, type AuditRow, auditOf } from '../../api/audit.ts';
import { keptSignal } from '../../app/kept-signal.ts';
import { goTo } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { usePages } from '../../components/use-pages.ts';
import { VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount } from '../../format/numbers.ts';
import { ChainCheck } from './chain-check.tsx';
import { COLUMNS, NEARNESS } from './columns.tsx';
import { SearchForm } from './search-form.tsx';

const audit = auditOf(client);
const query = keptSignal<AuditQuery>({});

/** All requests that pass, as many as one cares to scroll through. */
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
          <h1>Audit</h1>
          <p>Every request and what became of it, in a chain that cannot be changed unnoticed.</p>
        </div>
        <ChainCheck />
      </div>
      <SearchForm onSearch={(asked) => (query.value = asked)} />
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {isEmpty && (
        <EmptyState icon="audit" title="No request passes">
          <p>Ask a model something, or look for something else.</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <>
          <p class="soft small" role="status">
            {formatCount(rows.length)} requests{pages.isAtEnd.value ? '' : ', more when you scroll'}
          </p>
          <VirtualTable
            label="Requests"
            rows={rows}
            columns={query.value.similarTo === undefined ? COLUMNS : [NEARNESS, ...COLUMNS]}
            keyOf={({ id }) => id}
            onOpen={({ entry }) => goTo('audit', entry.requestId)}
            onEnd={pages.loadMore}
            height={560}
            minWidth={900}
          />
        </>
      )}
      {pages.isLoading.value && <Loading what="Looking" />}
    </div>
  );
}
