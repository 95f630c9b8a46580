import { useSignal } from '@preact/signals';
import { type MemoryRecord, memoryOf } from '../../api/memory.ts';
import { goTo, hrefOf } from '../../app/router.ts';
import { permissions, client } from '../../app/session.ts';
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
import { messages } from '../../messages/index.ts';
import { GraphCard } from './graph-card.tsx';
import { kindLabel } from '../../components/kind-label.ts';

const memory = memoryOf(client);
const text = messages.memory;
/** Kinds that can be deleted one by one; audit entries, sessions and policies cannot. */
const REMOVABLE_KINDS = new Set(['query', 'document', 'agent-step', 'fact', 'qa-pair', 'concept', 'pattern']);

/** One record: its text, links and fields. */
export function RecordPage({ id }: { id: string }) {
  const resource = useResource((signal) => memory.get(id, signal), [id]);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{text.record}</h1>
          <p class="mono">{visibleText(id)}</p>
        </div>
        <a href={hrefOf('memory')}>{text.allRecords}</a>
      </div>
      {resource.error.value !== null && <ErrorNotice error={resource.error.value} onRetry={resource.reload} />}
      {resource.data.value === null && resource.error.value === null && <Loading label={text.loadingRecord} />}
      {resource.data.value !== null && <RecordDetails {...resource.data.value} />}
    </div>
  );
}

function RecordDetails({ record, text: passage }: MemoryRecord) {
  const isConfirming = useSignal(false);
  async function remove(): Promise<void> {
    await memory.remove(record.id);
    showToast(text.recordDeleted);
    goTo('memory');
  }
  return (
    <>
      <section class="card stack" aria-label={text.text}>
        <div class="row">
          <Badge>{kindLabel(record.kind)}</Badge>
          <span class="small soft">{formatTime(record.createdMs)}</span>
        </div>
        <TextBlock label={text.text} text={passage} />
        {permissions.value.write && REMOVABLE_KINDS.has(record.kind) && (
          <div class="row end">
            <Button kind="danger" icon="trash" onClick={() => (isConfirming.value = true)}>
              {text.delete}
            </Button>
          </div>
        )}
      </section>
      <GraphCard id={record.id} />
      <section class="card" aria-label={text.fields}>
        <details>
          <summary>{text.fields}</summary>
          <JsonViewer
            value={{ ...record.fields, expiresMs: record.expiresMs, space: record.space, body: record.body }}
          />
        </details>
      </section>
      {isConfirming.value && (
        <Confirm
          title={text.confirmDeleteRecord}
          action={text.delete}
          onConfirm={remove}
          onClose={() => (isConfirming.value = false)}
        >
          {text.noUndo}
        </Confirm>
      )}
    </>
  );
}
