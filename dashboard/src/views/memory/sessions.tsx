import { useSignal } from '@preact/signals';
import { type MemorySession, memoryOf, type SessionTurn } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { allows, client } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { TextBlock } from '../../components/text-block.tsx';
import { usePages } from '../../components/use-pages.ts';
import { useResource } from '../../components/use-resource.ts';
import { type Column, VirtualTable } from '../../components/virtual-table.tsx';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';

const memory = memoryOf(client);

const COLUMNS: readonly Column<MemorySession>[] = [
  { title: 'Session', width: 'minmax(160px, 1fr)', cell: ({ sessionId }) => visibleText(sessionId) },
  { title: 'User', width: 'minmax(90px, 0.5fr)', cell: ({ userId }) => visibleText(userId ?? '–') },
  { title: 'Turns', width: '80px', isNumber: true, cell: ({ turnCount }) => formatCount(turnCount) },
  { title: 'Last used', width: '150px', cell: ({ lastActiveMs }) => <Moment ms={lastActiveMs} /> },
];

/** Conversations that the memory knows. */
export function Sessions() {
  const opened = useSignal<string | null>(null);
  const numChanges = useSignal(0);
  const pages = usePages<MemorySession>(
    async (after, signal) => {
      const { sessions, next } = await memory.sessions(after, signal);
      return { rows: sessions, next };
    },
    [numChanges.value],
  );
  const rows = pages.rows.value;
  return (
    <div class="stack">
      {pages.error.value !== null && <ErrorNotice error={pages.error.value} onRetry={pages.loadMore} />}
      {rows.length === 0 && !pages.isLoading.value && pages.error.value === null && (
        <EmptyState icon="chat" title="No sessions">
          <p>A request that names a session begins one.</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualTable
          label="Sessions"
          rows={rows}
          columns={COLUMNS}
          keyOf={({ sessionId }) => sessionId}
          onOpen={({ sessionId }) => (opened.value = sessionId)}
          onEnd={pages.loadMore}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading what="Looking" />}
      {opened.value !== null && (
        <OpenedSession
          sessionId={opened.value}
          onClose={() => (opened.value = null)}
          onRemoved={() => {
            opened.value = null;
            numChanges.value++;
          }}
        />
      )}
    </div>
  );
}

function OpenedSession(props: { sessionId: string; onClose: () => void; onRemoved: () => void }) {
  const { sessionId, onClose, onRemoved } = props;
  const found = useResource((signal) => memory.session(sessionId, signal), [sessionId]);
  const isAsking = useSignal(false);
  return (
    <Dialog title={`Session ${visibleText(sessionId)}`} isWide onClose={onClose}>
      <div class="stack">
        {found.error.value !== null && <ErrorNotice error={found.error.value} onRetry={found.reload} />}
        {found.data.value === null && found.error.value === null && <Loading what="Opening" />}
        {found.data.value !== null && <Turns turns={found.data.value.turns} />}
        {allows.value.write && (
          <div class="row end">
            <Button kind="danger" icon="trash" onClick={() => (isAsking.value = true)}>
              Forget the session
            </Button>
          </div>
        )}
      </div>
      {isAsking.value && (
        <Confirm
          title="Forget this session?"
          action="Forget it"
          onConfirm={async () => {
            await memory.removeSession(sessionId);
            onRemoved();
          }}
          onClose={() => (isAsking.value = false)}
        >
          Its turns go with it.
        </Confirm>
      )}
    </Dialog>
  );
}

function Turns({ turns }: { turns: readonly SessionTurn[] }) {
  if (turns.length === 0) return <p class="soft">Nothing was said yet.</p>;
  return (
    <ol class="turns">
      {turns.map(({ id, turn, query, answer, requestId, createdMs }) => (
        <li key={id} class="stack">
          <p class="small soft">
            <Moment ms={createdMs} /> {requestId !== null && <a href={hrefOf('audit', requestId)}>request</a>}
          </p>
          <TextBlock label={`Question ${turn + 1}`} text={query} />
          <TextBlock label={`Answer ${turn + 1}`} text={answer} />
        </li>
      ))}
    </ol>
  );
}
