import { useSignal } from '@preact/signals';
import { type DocumentInfo, memoryOf } from '../../api/memory.ts';
import { goTo } from '../../app/router.ts';
import { client, permissions } from '../../app/session.ts';
import { FilePicker, UploadState } from '../../components/file-picker.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useUpload } from '../../components/use-upload.ts';
import { usePages } from '../../components/use-pages.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { AddedCard } from './added-card.tsx';

const memory = memoryOf(client);
const text = messages.memory;

const COLUMNS: readonly Column<DocumentInfo>[] = [
  { title: text.columns.name, width: 'minmax(200px, 1fr)', cell: ({ name }) => <bdi>{visibleText(name)}</bdi> },
  { title: text.columns.chunks, width: '110px', isNumber: true, cell: ({ numChunks, isComplete }) => (isComplete ? formatCount(numChunks) : text.incomplete) }, // prettier-ignore
  { title: text.columns.size, width: '100px', isNumber: true, cell: ({ sizeBytes }) => formatBytes(sizeBytes) },
  { title: text.columns.updated, width: '150px', cell: ({ updatedMs }) => <Moment ms={updatedMs} /> },
];

/** The documents, with a place to drop files. */
export function Documents({ onChange }: { onChange: () => void }) {
  const numChanges = useSignal(0);
  const canWrite = permissions.value.write;
  const upload = useUpload(canWrite, () => {
    numChanges.value++;
    onChange();
  });
  const pages = usePages<DocumentInfo>(
    async (after, signal) => {
      const { documents, next } = await memory.documents(after, signal);
      return { rows: documents, next };
    },
    [numChanges.value],
  );
  const rows = pages.rows.value;

  return (
    <div class={upload.isOver.value ? 'stack drop-zone is-over' : 'stack drop-zone'} {...upload.dropHandlers}>
      {canWrite && (
        <div class="row">
          <FilePicker upload={upload} kind="primary" icon="plus">
            {text.addFiles}
          </FilePicker>
          <span class="small soft">{text.dropHint}</span>
        </div>
      )}
      <UploadState upload={upload} />
      {upload.uploading.value !== null && upload.progress.value.numFiles > 1 && (
        <progress
          class="memory-progress"
          aria-label={text.addingFiles}
          max={upload.progress.value.numFiles}
          value={upload.progress.value.numDone}
        />
      )}
      {upload.added.value.map((document) => (
        <AddedCard key={document.id} document={document} />
      ))}
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {rows.length === 0 && !pages.isLoading.value && pages.error.value === null && (
        <EmptyState icon="list" title={text.noDocuments}>
          <p>{text.noDocumentsHint}</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualTable
          label={text.documents}
          rows={rows}
          columns={COLUMNS}
          keyOf={({ id }) => id}
          onOpen={({ id }) => goTo('memory', 'documents', id)}
          onEnd={pages.loadMore}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading label={text.loadingDocuments} />}
    </div>
  );
}
