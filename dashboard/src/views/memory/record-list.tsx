import { useSignal } from '@preact/signals';
import { type MemoryItem, type MemoryStats, memoryOf } from '../../api/memory.ts';
import { keptSignal } from '../../app/kept-signal.ts';
import { goTo } from '../../app/router.ts';
import { allows, client } from '../../app/session.ts';
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
import { AddDialog } from './add-dialog.tsx';

const memory = memoryOf(client);
const MAX_CHARS = 200;
/** Who opens a record and comes back finds what was looked for. */
const kind = keptSignal<string | null>(null);
const draft = keptSignal('');
const asked = keptSignal('');

const COLUMNS: readonly Column<MemoryItem>[] = [
  { title: 'Kind', width: '130px', cell: ({ kind }) => <Badge>{visibleText(kind)}</Badge> },
  { title: 'Text', width: 'minmax(220px, 1fr)', cell: ({ text }) => <bdi>{oneLine(text)}</bdi> },
  { title: 'When', width: '150px', cell: ({ createdMs }) => <Moment ms={createdMs} /> },
];
const NEARNESS: Column<MemoryItem> = {
  title: 'Near',
  width: '70px',
  isNumber: true,
  cell: ({ similarity }) => formatNumber(similarity ?? NaN),
};

const oneLine = (text: string): string => visibleText(text.slice(0, MAX_CHARS).replaceAll(/\s+/g, ' '));

/** Collections, and what is in them, by time or by meaning. */
export function RecordList({ stats, onChange }: { stats: MemoryStats; onChange: () => void }) {
  const isAdding = useSignal(false);
  const pages = usePages<MemoryItem>(
    async (after, signal) => {
      if (asked.value !== '') return { rows: await memory.search(asked.value, kind.value, signal), next: null };
      const { records, next } = await memory.list(kind.value, after, signal);
      return { rows: records, next };
    },
    [kind.value, asked.value, stats],
  );
  const rows = pages.rows.value;
  const kinds = Object.entries(stats.numRecords).filter(([, count]) => count > 0);
  return (
    <div class="stack">
      <div class="row" role="group" aria-label="Collections">
        <Button isSmall isPressed={kind.value === null} onClick={() => (kind.value = null)}>
          All
        </Button>
        {kinds.map(([name, count]) => (
          <Button key={name} isSmall isPressed={kind.value === name} onClick={() => (kind.value = name)}>
            {visibleText(name)} {formatCount(count)}
          </Button>
        ))}
      </div>
      <form
        class="row memory-search"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = draft.value.trim();
        }}
      >
        <input
          class="input"
          type="search"
          aria-label="Search by meaning"
          placeholder="Search by meaning"
          maxLength={4096}
          value={draft.value}
          onInput={(event) => {
            draft.value = event.currentTarget.value;
            if (draft.value === '') asked.value = '';
          }}
        />
        <Button icon="search" type="submit">
          Search
        </Button>
        {allows.value.write && (
          <Button kind="primary" icon="plus" onClick={() => (isAdding.value = true)}>
            Remember a text
          </Button>
        )}
      </form>
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {rows.length === 0 && !pages.isLoading.value && pages.error.value === null && (
        <EmptyState icon="memory" title="Nothing here" />
      )}
      {rows.length > 0 && (
        <VirtualTable
          label="Records"
          rows={rows}
          columns={asked.value === '' ? COLUMNS : [NEARNESS, ...COLUMNS]}
          keyOf={({ id }) => id}
          onOpen={({ id }) => goTo('memory', id)}
          onEnd={pages.loadMore}
          height={520}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading what="Looking" />}
      {isAdding.value && <AddDialog onClose={() => (isAdding.value = false)} onAdded={onChange} />}
    </div>
  );
}
