import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { type DocumentInfo, memoryOf } from '../../api/memory.ts';
import { messageOf } from '../../api/errors.ts';
import { goTo } from '../../app/router.ts';
import { client, permissions } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice, Notice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { usePages } from '../../components/use-pages.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatBytes, formatCount, formatCountOf } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

const memory = memoryOf(client);

const COLUMNS: readonly Column<DocumentInfo>[] = [
  { title: 'Name', width: 'minmax(200px, 1fr)', cell: ({ name }) => <bdi>{visibleText(name)}</bdi> },
  { title: 'Chunks', width: '110px', isNumber: true, cell: ({ numChunks, isComplete }) => (isComplete ? formatCount(numChunks) : 'incomplete') }, // prettier-ignore
  { title: 'Size', width: '100px', isNumber: true, cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
  { title: 'Updated', width: '150px', cell: ({ updatedMs }) => <Moment ms={updatedMs} /> },
];

/** The documents, with a place to drop files. */
export function Documents({ onChange }: { onChange: () => void }) {
  const numChanges = useSignal(0);
  const isOver = useSignal(false);
  const uploading = useSignal<string | null>(null);
  const refusals = useSignal<readonly string[]>([]);
  const picker = useRef<HTMLInputElement>(null);
  const canWrite = permissions.value.write;
  const pages = usePages<DocumentInfo>(
    async (after, signal) => {
      const { documents, next } = await memory.documents(after, signal);
      return { rows: documents, next };
    },
    [numChanges.value],
  );
  const rows = pages.rows.value;

  async function upload(files: readonly File[]): Promise<void> {
    refusals.value = [];
    for (const file of files) {
      uploading.value = file.name;
      try {
        const { numChunks, isUnchanged } = await memory.addDocument(file);
        showToast(isUnchanged ? `${file.name} is unchanged.` : `${file.name}: ${formatCountOf(numChunks, 'chunk')}.`);
      } catch (error) {
        refusals.value = [...refusals.value, messageOf(error)];
      }
    }
    uploading.value = null;
    numChanges.value++;
    onChange();
  }

  return (
    <div
      class={isOver.value ? 'stack drop-zone is-over' : 'stack drop-zone'}
      onDragOver={(event) => {
        if (!canWrite) return;
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => (isOver.value = false)}
      onDrop={(event) => {
        if (!canWrite) return;
        event.preventDefault();
        isOver.value = false;
        void upload([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {canWrite && (
        <div class="row">
          <Button
            kind="primary"
            icon="plus"
            isDisabled={uploading.value !== null}
            onClick={() => picker.current?.click()}
          >
            Add files
          </Button>
          <span class="small soft">or drop them here: text, Markdown, HTML, PDF and source code</span>
          <input
            ref={picker}
            class="unseen"
            type="file"
            multiple
            tabIndex={-1}
            aria-label="Files to add"
            onChange={({ currentTarget }) => {
              void upload([...(currentTarget.files ?? [])]);
              currentTarget.value = '';
            }}
          />
        </div>
      )}
      {uploading.value !== null && <Loading label={`Adding ${visibleText(uploading.value)}`} />}
      {refusals.value.map((reason) => (
        <Notice key={reason} tone="warn">
          {visibleText(reason)}
        </Notice>
      ))}
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {rows.length === 0 && !pages.isLoading.value && pages.error.value === null && (
        <EmptyState icon="list" title="No documents">
          <p>A document is divided into chunks, which answers cite with their lines or pages.</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualTable
          label="Documents"
          rows={rows}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          onOpen={({ id }) => goTo('memory', 'documents', id)}
          onEnd={pages.loadMore}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading label="Loading documents" />}
    </div>
  );
}
