import { useSignal } from '@preact/signals';
import { type DocumentChunk, type DocumentDetails, memoryOf } from '../../api/memory.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { client, permissions } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { StatTile } from '../../components/stat-tile.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { showToast } from '../../components/toast.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatBytes, formatCount } from '../../format/numbers.ts';
import { placeOf } from '../../format/place.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const memory = memoryOf(client);
const text = messages.memory;
/** Chunks shown before the button for more. */
const FIRST_CHUNKS = 50;

/** A document with its chunks, and the requests that each was a source of. */
export function DocumentPage({ id }: { id: string }) {
  const resource = useResource((signal) => memory.document(id, signal), [id]);
  const data = resource.data.value;
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{data === null ? text.document : visibleText(data.document.name)}</h1>
          <p class="mono">{visibleText(id)}</p>
        </div>
        <a href={hrefOf('memory')}>{text.allDocuments}</a>
      </div>
      {resource.error.value !== null && <ErrorNotice error={resource.error.value} onRetry={resource.reload} />}
      {data === null && resource.error.value === null && <Loading label={text.loadingDocument} />}
      {data !== null && <Details {...data} />}
    </div>
  );
}

function Details({ document, chunks }: DocumentDetails) {
  const isConfirming = useSignal(false);
  const numShown = useSignal(FIRST_CHUNKS);
  const numRequests = new Set(chunks.flatMap(({ requests }) => requests.map(({ requestId }) => requestId))).size;
  return (
    <>
      <dl class="tiles">
        <StatTile label={text.columns.chunks} value={formatCount(chunks.length)} />
        <StatTile label={text.size} value={formatBytes(document.sizeBytes)} note={visibleText(document.contentType)} />
        <StatTile label={text.requests} value={formatCount(numRequests)} note={text.requestsNote} />
      </dl>
      {permissions.value.write && (
        <div class="row end">
          <Button kind="danger" icon="trash" onClick={() => (isConfirming.value = true)}>
            {text.delete}
          </Button>
        </div>
      )}
      <ol class="chunks" aria-label={text.columns.chunks}>
        {chunks.slice(0, numShown.value).map((chunk) => (
          <Chunk key={chunk.id} chunk={chunk} />
        ))}
      </ol>
      {numShown.value < chunks.length && (
        <Button onClick={() => (numShown.value += 10 * FIRST_CHUNKS)}>
          {text.showMore(formatCount(chunks.length - numShown.value))}
        </Button>
      )}
      {isConfirming.value && (
        <Confirm
          title={text.confirmDeleteDocument}
          action={text.delete}
          onConfirm={async () => {
            await memory.removeDocument(document.id);
            showToast(text.documentDeleted);
            goTo('memory');
          }}
          onClose={() => (isConfirming.value = false)}
        >
          {text.deleteDocumentHint}
        </Confirm>
      )}
    </>
  );
}

function Chunk({ chunk }: { chunk: DocumentChunk }) {
  const { id, headings, requests } = chunk;
  const number = formatCount(chunk.index + 1);
  return (
    <li class="card stack">
      <p class="small soft">
        <a href={hrefOf('memory', id)}>{placeOf(chunk)}</a> {visibleText(headings.join(' › '))}
      </p>
      <TextBlock label={text.chunk(number)} text={chunk.text} />
      {requests.length > 0 && (
        <ul class="chunk-requests small" aria-label={text.chunkRequests(number)}>
          {requests.map(({ requestId, query, timestampMs }) => (
            <li key={requestId}>
              <a href={hrefOf('audit', requestId)}>{visibleText(query)}</a> <Moment ms={timestampMs} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
