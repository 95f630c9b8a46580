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

const memory = memoryOf(client);
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
          <h1>{data === null ? 'Document' : visibleText(data.document.name)}</h1>
          <p class="mono">{visibleText(id)}</p>
        </div>
        <a href={hrefOf('memory')}>All documents</a>
      </div>
      {resource.error.value !== null && <ErrorNotice error={resource.error.value} onRetry={resource.reload} />}
      {data === null && resource.error.value === null && <Loading label="Loading document" />}
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
        <StatTile label="Chunks" value={formatCount(chunks.length)} />
        <StatTile label="Size" value={formatBytes(document.sizeBytes)} note={visibleText(document.contentType)} />
        <StatTile label="Requests" value={formatCount(numRequests)} note="that used a chunk" />
      </dl>
      {permissions.value.write && (
        <div class="row end">
          <Button kind="danger" icon="trash" onClick={() => (isConfirming.value = true)}>
            Delete
          </Button>
        </div>
      )}
      <ol class="chunks" aria-label="Chunks">
        {chunks.slice(0, numShown.value).map((chunk) => (
          <Chunk key={chunk.id} chunk={chunk} />
        ))}
      </ol>
      {numShown.value < chunks.length && (
        <Button onClick={() => (numShown.value += 10 * FIRST_CHUNKS)}>
          Show {formatCount(chunks.length - numShown.value)} more
        </Button>
      )}
      {isConfirming.value && (
        <Confirm
          title="Delete this document?"
          action="Delete"
          onConfirm={async () => {
            await memory.removeDocument(document.id);
            showToast('Document deleted.');
            goTo('memory');
          }}
          onClose={() => (isConfirming.value = false)}
        >
          This also deletes its chunks and cannot be undone.
        </Confirm>
      )}
    </>
  );
}

function Chunk({ chunk }: { chunk: DocumentChunk }) {
  const { id, text, headings, requests } = chunk;
  return (
    <li class="card stack">
      <p class="small soft">
        <a href={hrefOf('memory', id)}>{placeOf(chunk)}</a> {visibleText(headings.join(' › '))}
      </p>
      <TextBlock label={`Chunk ${chunk.index + 1}`} text={text} />
      {requests.length > 0 && (
        <ul class="chunk-requests small" aria-label={`Requests of chunk ${chunk.index + 1}`}>
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
