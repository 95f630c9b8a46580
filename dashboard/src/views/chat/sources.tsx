import { useSignal } from '@preact/signals';
import type { AnswerSource } from '../../api/chat.ts';
import { memoryOf } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { client } from '../../app/session.ts';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { useResource } from '../../components/use-resource.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.chat.sources;
const memory = memoryOf(client);

/** The memory records in the prompt of an answer; each opens its passage. */
export function Sources({ sources }: { sources: readonly AnswerSource[] }) {
  if (sources.length === 0) return null;
  return (
    <section class="sources" aria-label={text.title}>
      <h3>{text.title}</h3>
      <ol>
        {sources.map((source) => (
          <Source key={source.number} source={source} />
        ))}
      </ol>
    </section>
  );
}

function Source({ source }: { source: AnswerSource }) {
  const isOpen = useSignal(false);
  return (
    <li value={source.number}>
      <details onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
        <summary>{visibleText(titleOf(source))}</summary>
        {isOpen.value && <Passage id={source.id} />}
      </details>
    </li>
  );
}

function Passage({ id }: { id: string }) {
  const { data, error, reload } = useResource((signal) => memory.get(id, signal), [id]);
  if (error.value !== null) return <ErrorNotice error={error.value} onRetry={reload} />;
  if (data.value === null) return <Loading label={text.loading} />;
  const { record, text: passage } = data.value;
  const documentId = record.fields['documentId'];
  return (
    <>
      <TextBlock text={passage} label={text.passage} />
      {typeof documentId === 'string' ? (
        <a href={hrefOf('memory', 'documents', documentId)}>{text.openDocument}</a>
      ) : (
        <a href={hrefOf('memory', id)}>{text.openRecord}</a>
      )}
    </>
  );
}

/** `handbook.md, lines 5–7 › Opening hours`, or the kind of the record. */
function titleOf({ kind, part }: AnswerSource): string {
  if (part === undefined) return text.kinds[kind as keyof typeof text.kinds] ?? kind;
  const { name, headings, startLine, endLine, startPage, endPage } = part;
  const place =
    startPage === null ? text.lines(startLine!, endLine ?? startLine!) : text.pages(startPage, endPage ?? startPage);
  return [`${name}, ${place}`, ...headings].join(' › ');
}
