import { useSignal } from '@preact/signals';
import { type MemorySession, memoryOf, type SessionTurn } from '../../api/memory.ts';
import { hrefOf } from '../../app/router.ts';
import { permissions, client } from '../../app/session.ts';
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
import { messages } from '../../messages/index.ts';

const memory = memoryOf(client);
const text = messages.memory;

const COLUMNS: readonly Column<MemorySession>[] = [
  { title: text.columns.session, width: 'minmax(160px, 1fr)', cell: ({ sessionId }) => visibleText(sessionId) },
  { title: text.columns.user, width: 'minmax(90px, 0.5fr)', cell: ({ userId }) => visibleText(userId ?? '–') },
  { title: text.columns.turns, width: '80px', isNumber: true, cell: ({ turnCount }) => formatCount(turnCount) },
  { title: text.columns.lastActive, width: '150px', cell: ({ lastActiveMs }) => <Moment ms={lastActiveMs} /> },
];

/** The sessions stored in memory. */
export function Sessions() {
  const openId = useSignal<string | null>(null);
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
        <EmptyState icon="chat" title={text.noSessions}>
          <p>{text.noSessionsHint}</p>
        </EmptyState>
      )}
      {rows.length > 0 && (
        <VirtualTable
          label={text.sessions}
          rows={rows}
          columns={COLUMNS}
          keyOf={({ sessionId }) => sessionId}
          onOpen={({ sessionId }) => (openId.value = sessionId)}
          onEnd={pages.loadMore}
          minWidth={520}
        />
      )}
      {pages.isLoading.value && <Loading label={text.loadingSessions} />}
      {openId.value !== null && (
        <SessionDialog
          sessionId={openId.value}
          onClose={() => (openId.value = null)}
          onRemoved={() => {
            openId.value = null;
            numChanges.value++;
          }}
        />
      )}
    </div>
  );
}

function SessionDialog(props: { sessionId: string; onClose: () => void; onRemoved: () => void }) {
  const { sessionId, onClose, onRemoved } = props;
  const session = useResource((signal) => memory.session(sessionId, signal), [sessionId]);
  const isConfirming = useSignal(false);
  return (
    <Dialog title={text.session(visibleText(sessionId))} isWide onClose={onClose}>
      <div class="stack">
        {session.error.value !== null && <ErrorNotice error={session.error.value} onRetry={session.reload} />}
        {session.data.value === null && session.error.value === null && <Loading label={text.loadingSession} />}
        {session.data.value !== null && <Turns turns={session.data.value.turns} />}
        {permissions.value.write && (
          <div class="row end">
            <Button kind="danger" icon="trash" onClick={() => (isConfirming.value = true)}>
              {text.deleteSession}
            </Button>
          </div>
        )}
      </div>
      {isConfirming.value && (
        <Confirm
          title={text.confirmDeleteSession}
          action={text.delete}
          onConfirm={async () => {
            await memory.removeSession(sessionId);
            onRemoved();
          }}
          onClose={() => (isConfirming.value = false)}
        >
          {text.deleteSessionHint}
        </Confirm>
      )}
    </Dialog>
  );
}

function Turns({ turns }: { turns: readonly SessionTurn[] }) {
  if (turns.length === 0) return <p class="soft">{text.noTurns}</p>;
  return (
    <ol class="turns">
      {/* The server returns the newest first. */}
      {turns
        .toSorted((a, b) => a.turn - b.turn)
        .map(({ id, turn, query, answer, requestId, createdMs }) => (
          <li key={id} class="stack">
            <p class="small soft">
              <Moment ms={createdMs} /> {requestId !== null && <a href={hrefOf('audit', requestId)}>{text.request}</a>}
            </p>
            <TextBlock label={text.prompt(formatCount(turn + 1))} text={query} />
            <TextBlock label={text.answer(formatCount(turn + 1))} text={answer} />
          </li>
        ))}
    </ol>
  );
}
