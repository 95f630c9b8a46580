import { useSignal } from '@preact/signals';
import { type MemoryRecord, memoryOf } from '../../api/memory.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { allows, client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { JsonViewer } from '../../components/json-viewer.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { showToast } from '../../components/toast.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatTime } from '../../format/time.ts';
import { visibleText } from '../../format/visible-text.ts';
import { GraphCard } from './graph-picture.tsx';

const memory = memoryOf(client);
/** What others than the audit log may forget one by one. */
const REMOVABLE = new Set(['query', 'document', 'agent-step', 'fact', 'qa-pair', 'concept', 'pattern']);

/** One record: its words, its facts, its links. */
export function RecordPage({ id }: { id: string }) {
  const found = useResource((signal) => memory.get(id, signal), [id]);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>Record</h1>
          <p class="mono">{visibleText(id)}</p>
        </div>
        <a href={hrefOf('memory')}>All records</a>
      </div>
      {found.error.value !== null && <ErrorNotice error={found.error.value} onRetry={found.reload} />}
      {found.data.value === null && found.error.value === null && <Loading what="Opening" />}
      {found.data.value !== null && <Opened found={found.data.value} />}
    </div>
  );
}

function Opened({ found: { record, text } }: { found: MemoryRecord }) {
  const isAsking = useSignal(false);
  async function remove(): Promise<void> {
    await memory.remove(record.id);
    showToast('It is forgotten.');
    goTo('memory');
  }
  return (
    <>
      <section class="card stack" aria-label="Text">
        <div class="row">
          <Badge>{visibleText(record.kind)}</Badge>
          <span class="small soft">{formatTime(record.createdMs)}</span>
        </div>
        <TextBlock label="Text" text={text} />
        {allows.value.write && REMOVABLE.has(record.kind) && (
          <div class="row end">
            <Button kind="danger" icon="trash" onClick={() => (isAsking.value = true)}>
              Forget it
            </Button>
          </div>
        )}
      </section>
      <GraphCard id={record.id} />
      <section class="card" aria-label="Facts">
        <h2>Facts</h2>
        <JsonViewer value={{ ...record.fields, expiresMs: record.expiresMs, space: record.space, body: record.body }} />
      </section>
      {isAsking.value && (
        <Confirm
          title="Forget this record?"
          action="Forget it"
          onConfirm={remove}
          onClose={() => (isAsking.value = false)}
        >
          It cannot be brought back.
        </Confirm>
      )}
    </>
  );
}
