import { actionRunner, type Actions, flagsOf, helpOf, pick } from '../memory/action.ts';
import { columnsOf, dateOf, oneLine } from '../memory/show.ts';
import { readInteger } from '../values.ts';

interface Session {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly activeAdapter: string | null;
  readonly turnCount: number;
  readonly lastActiveMs: number;
  readonly similarity?: number | null;
}

interface Turn {
  readonly turn: number;
  readonly createdMs: number;
  readonly query: string;
  readonly answer: string;
}

const SESSION_ACTIONS: Actions = {
  list: {
    args: '',
    description: 'by user, by adapter, or by what they are about; the newest first',
    flags: [
      { name: '--user', value: 'id', description: 'of this user' },
      { name: '--adapter', value: 'name', description: 'with this adapter' },
      { name: '--similar', value: 'text', description: 'about this; the nearest first' },
      { name: '--limit', value: 'n', read: readInteger, description: 'default 50; turns of show: 20' },
      { name: '--after', value: 'next', description: 'go on behind a page: its "next"' },
    ],
    needsModel: ({ values }) => values['--similar'] !== undefined,
    async run(client, context) {
      const { output } = context;
      const names = { '--user': 'userId', '--adapter': 'adapter', '--similar': 'similarTo', '--limit': 'limit', '--after': 'after' }; // prettier-ignore
      const page = await client.call<{ sessions: readonly Session[]; next: string | null }>('sessions.list', pick(context, names)); // prettier-ignore
      output.document(page);
      if (page.sessions.length === 0) return output.note('no sessions');
      const rows = page.sessions.map(({ sessionId, userId, activeAdapter, turnCount, lastActiveMs }) => [
        dateOf(lastActiveMs),
        String(turnCount),
        userId ?? '–',
        activeAdapter ?? '–',
        sessionId,
      ]);
      output.table(['LAST ACTIVE', 'TURNS', 'USER', 'ADAPTER', 'SESSION'], rows);
      if (page.next !== null) output.note(`more with: --after '${page.next}'`);
    },
  },
  show: {
    args: '<id>',
    description: 'its newest turns',
    flags: [{ name: '--limit', value: 'n', read: readInteger, description: 'default 50; turns of show: 20' }],
    async run(client, context, [sessionId]) {
      const { io, output } = context;
      const shown = await client.call<{ session: Session; turns: readonly Turn[] }>('sessions.show', {
        sessionId,
        ...pick(context, { '--limit': 'limit' }),
      });
      output.document(shown);
      const { session, turns } = shown;
      output.lines(
        `${oneLine(session.sessionId, 80)}: ${session.turnCount} turns, last ${dateOf(session.lastActiveMs)}`,
      );
      const room = columnsOf(io) - 4;
      for (const { turn, createdMs, query, answer } of turns.toReversed()) {
        output.lines(`\n${turn + 1}  ${dateOf(createdMs)}\n  > ${oneLine(query, room)}\n  < ${oneLine(answer, room)}`);
      }
    },
  },
  rm: {
    args: '<id>',
    description: 'forget it and its turns',
    flags: [],
    async run(client, { output }, [sessionId]) {
      output.document(await client.call<object>('sessions.rm', { sessionId }));
      output.lines(`${oneLine(sessionId!, 80)} is removed`);
    },
  },
};

export const SESSIONS_FLAGS = flagsOf(SESSION_ACTIONS);
export const SESSIONS_HELP = helpOf(
  SESSION_ACTIONS,
  'These are the conversations the memory knows. What a loaded model keeps of a conversation, to answer faster, ' +
    'goes by the same name and is another thing: GET /admin/sessions/TENANT of the server shows that.',
);
export const sessions = actionRunner('sessions', SESSION_ACTIONS);
