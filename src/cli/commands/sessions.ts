import { actionRunner, type Actions, AFTER_FLAG, flagsOf, helpOf, limitFlag, noteNextPage, pick } from '../memory/action.ts'; // prettier-ignore
import { columnsOf, dateOf, oneLine } from '../memory/show.ts';

const LIMIT_FLAG = limitFlag('sessions (default 50) or turns (default 20)', null);

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
    description: 'list sessions, newest first, by user, adapter or similarity',
    flags: [
      { name: '--user', value: 'id', description: 'sessions of this user' },
      { name: '--adapter', value: 'name', description: 'sessions with this adapter' },
      { name: '--similar', value: 'text', description: 'sessions similar to this text; nearest first' },
      LIMIT_FLAG,
      AFTER_FLAG,
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
      noteNextPage(output, page.next);
    },
  },
  show: {
    args: '<id>',
    description: 'show the newest turns of a session',
    flags: [LIMIT_FLAG],
    async run(client, context, [sessionId]) {
      const { io, output } = context;
      const details = await client.call<{ session: Session; turns: readonly Turn[] }>('sessions.show', {
        sessionId,
        ...pick(context, { '--limit': 'limit' }),
      });
      output.document(details);
      const { session, turns } = details;
      output.lines(
        `${oneLine(session.sessionId, 80)}: ${session.turnCount} turns, last ${dateOf(session.lastActiveMs)}`,
      );
      const width = columnsOf(io) - 4;
      for (const { turn, createdMs, query, answer } of turns.toReversed()) {
        output.lines(
          `\n${turn + 1}  ${dateOf(createdMs)}\n  > ${oneLine(query, width)}\n  < ${oneLine(answer, width)}`,
        );
      }
    },
  },
  rm: {
    args: '<id>',
    description: 'delete a session and its turns',
    flags: [],
    async run(client, { output }, [sessionId]) {
      output.document(await client.call<object>('sessions.rm', { sessionId }));
      output.lines(`removed ${oneLine(sessionId!, 80)}`);
    },
  },
};

export const SESSIONS_FLAGS = flagsOf(SESSION_ACTIONS);
export const SESSIONS_HELP = helpOf(
  SESSION_ACTIONS,
  'These sessions are conversations stored in the memory. The sessions of the KV cache have the same name but are ' +
    'unrelated; GET /admin/sessions/TENANT on the server lists them.',
);
export const sessions = actionRunner('sessions', SESSION_ACTIONS);
