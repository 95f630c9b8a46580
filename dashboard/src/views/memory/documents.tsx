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
            Add files
          </FilePicker>
          <span class="small soft">or drop them here: text, Markdown, HTML, PDF and source code</span>
        </div>
      )}
      <UploadState upload={upload} />
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
