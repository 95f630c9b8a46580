import { useSignal } from '@preact/signals';
import { type MemoryItem, type MemoryStats, memoryOf } from '../../api/memory.ts';
import { sessionSignal } from '../../app/session-signal.ts';
import { goTo } from '../../app/router.ts';
import { permissions, client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { usePages } from '../../components/use-pages.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount, formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { AddDialog } from './add-dialog.tsx';
import { kindLabel } from '../../components/kind-label.ts';

const memory = memoryOf(client);
const text = messages.memory;
const MAX_CHARS = 200;
/** Keeps the filters while a record is open. */
const kind = sessionSignal<string | null>(null);
const draft = sessionSignal('');
const searchText = sessionSignal('');

const COLUMNS: readonly Column<MemoryItem>[] = [
  { title: text.columns.kind, width: '155px', cell: ({ kind }) => <Badge>{kindLabel(kind)}</Badge> },
  { title: text.columns.text, width: 'minmax(220px, 1fr)', cell: (item) => <bdi>{oneLine(item.text)}</bdi> },
  { title: text.columns.created, width: '150px', cell: ({ createdMs }) => <Moment ms={createdMs} /> },
];
const SIMILARITY: Column<MemoryItem> = {
  title: text.columns.similarity,
  width: '95px',
  isNumber: true,
  cell: ({ similarity }) => formatNumber(similarity ?? NaN),
};

const oneLine = (long: string): string => visibleText(long.slice(0, MAX_CHARS).replaceAll(/\s+/g, ' '));

/** The records of all collections or one, listed by time or searched by similarity. */
export function RecordList({ stats, onChange }: { stats: MemoryStats; onChange: () => void }) {
  const isAdding = useSignal(false);
  const pages = usePages<MemoryItem>(
    async (after, signal) => {
      if (searchText.value !== '') {
        return { rows: await memory.search(searchText.value, kind.value, signal), next: null };
      }
      const { records, next } = await memory.list(kind.value, after, signal);
      return { rows: records, next };
    },
    [kind.value, searchText.value, stats],
  );
  const rows = pages.rows.value;
  const kinds = Object.entries(stats.numRecords).filter(([, count]) => count > 0);
  return (
    <div class="stack">
      <div class="row" role="group" aria-label={text.collections}>
        <Button isSmall isPressed={kind.value === null} onClick={() => (kind.value = null)}>
          {text.all}
        </Button>
        {kinds.map(([name, count]) => (
          <Button key={name} isSmall isPressed={kind.value === name} onClick={() => (kind.value = name)}>
            {kindLabel(name)} {formatCount(count)}
          </Button>
        ))}
      </div>
      <form
        class="row memory-search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          searchText.value = draft.value.trim();
        }}
      >
        <input
          class="input"
          type="search"
          aria-label={text.semanticSearch}
          placeholder={text.semanticSearch}
          maxLength={4096}
          value={draft.value}
          onInput={(event) => {
            draft.value = event.currentTarget.value;
            if (draft.value === '') searchText.value = '';
          }}
        />
        <Button icon="search" type="submit">
          {text.search}
        </Button>
        {permissions.value.write && (
          <Button kind="primary" icon="plus" onClick={() => (isAdding.value = true)}>
            {text.addText}
          </Button>
        )}
      </form>
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {rows.length === 0 && !pages.isLoading.value && pages.error.value === null && (
        <EmptyState icon="memory" title={text.noRecords}>
          <p>{text.noRecordsHint}</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualTable
          label={text.records}
          rows={rows}
          columns={searchText.value === '' ? COLUMNS : [SIMILARITY, ...COLUMNS]}
          keyOf={({ id }) => id}
          onOpen={({ id }) => goTo('memory', id)}
          onEnd={pages.loadMore}
          height={520}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading label={text.loadingRecords} />}
      {isAdding.value && <AddDialog onClose={() => (isAdding.value = false)} onAdded={onChange} />}
    </div>
  );
}
