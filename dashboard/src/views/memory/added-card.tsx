import { type AddedDocument, memoryOf } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { placeOf } from '../../format/place.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.memory;
/** Chunks in the card; the page of the document has all. */
const MAX_CHUNKS = 3;
const MAX_CHARS = 160;

/** What was found in a file that was just added: its first chunks, each a link to the passage. */
export function AddedCard({ document: { id, name, numChunks, isUnchanged } }: { document: AddedDocument }) {
  const details = useResource((signal) => memoryOf(client).document(id, signal), [id]);
  const chunks = details.data.value?.chunks ?? [];
  return (
    <section class="card stack" aria-label={text.foundIn(visibleText(name))}>
      <p>
        <a href={hrefOf('memory', 'documents', id)}>{visibleText(name)}</a>:{' '}
        {isUnchanged ? text.unchanged : text.chunkCount(numChunks)}
      </p>
      {details.error.value !== null && <ErrorNotice error={details.error.value} onRetry={details.reload} />}
      {details.data.value === null && details.error.value === null && <Loading label={text.loadingDocument} />}
      <ul class="chunks small">
        {chunks.slice(0, MAX_CHUNKS).map((chunk) => (
          <li key={chunk.id}>
            <a href={hrefOf('memory', chunk.id)}>{placeOf(chunk)}</a>{' '}
            <strong>{visibleText(chunk.headings.join(' › '))}</strong>{' '}
            <bdi class="soft">{visibleText(chunk.text.slice(0, MAX_CHARS).replaceAll(/\s+/g, ' '))}</bdi>
          </li>
        ))}
      </ul>
    </section>
  );
}
