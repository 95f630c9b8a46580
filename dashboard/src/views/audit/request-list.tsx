import { type AuditQuery, type AuditRow, auditOf } from '../../api/audit.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { usePages } from '../../components/use-pages.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { messages } from '../../messages/index.ts';
import { ChainCheck } from './chain-check.tsx';
import { COLUMNS, oneLine, SIMILARITY } from './columns.tsx';
import { SearchForm } from './search-form.tsx';

const text = messages.audit;
const audit = auditOf(client);
const query = sessionSignal<AuditQuery>({});

/** Requests to compare, at most two: a third replaces the older one. */
const selectedIds = sessionSignal<readonly string[]>([]);

const SELECT: Column<AuditRow> = {
  title: text.compare.action,
  width: '44px',
  isTitleUnseen: true,
  cell: ({ entry: { requestId, query: prompt } }) => (
    <input
      type="checkbox"
      aria-label={text.compare.select(oneLine(prompt))}
      checked={selectedIds.value.includes(requestId)}
      onClick={(event) => event.stopPropagation()}
      onChange={({ currentTarget: { checked } }) => {
        const others = selectedIds.value.filter((id) => id !== requestId);
        selectedIds.value = checked ? [...others.slice(-1), requestId] : others;
      }}
    />
  ),
};

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
  const hasFilters = Object.keys(query.value).length > 0;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.title}</h1>
          <p>{text.subtitle}</p>
        </div>
        <ChainCheck />
      </div>
      <SearchForm onSearch={(newQuery) => (query.value = newQuery)} />
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {isEmpty && (
        <EmptyState icon="audit" title={hasFilters ? text.noMatches : text.empty}>
          <p>{hasFilters ? text.noMatchesHint : text.emptyHint}</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <>
          <div class="row audit-selection">
            <p class="soft small" role="status">
              {text.count(rows.length)}
              {pages.isAtEnd.value ? '' : text.scrollForMore}
            </p>
            {selectedIds.value.length === 1 && <p class="small">{text.compare.selectAnother}</p>}
            {selectedIds.value.length === 2 && (
              <a class="button" href={hrefOf('audit', 'compare', ...selectedIds.value)}>
                {text.compare.selected}
              </a>
            )}
          </div>
          <VirtualTable
            label={text.requests}
            rows={rows}
            columns={query.value.similarTo === undefined ? [SELECT, ...COLUMNS] : [SELECT, SIMILARITY, ...COLUMNS]}
            keyOf={({ id }) => id}
            onOpen={({ entry }) => goTo('audit', entry.requestId)}
            onEnd={pages.loadMore}
            height={560}
            minWidth={990}
          />
        </>
      )}
      {pages.isLoading.value && <Loading label={text.loading} />}
    </div>
  );
}
