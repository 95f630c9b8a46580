import type { SessionState, SessionTurn } from '../../memory/schemas/session.ts';
import { actionCommand } from '../actions.ts';
import { AFTER_ROW, memoryAction, noteNextPage } from '../memory/action.ts';
import { CLIENT_FLAGS } from '../memory/client.ts';
import { columnsOf, dateOf, oneLine } from '../memory/show.ts';

const LIMIT_ROW = { '--limit <n> limit': 'maximum number of sessions (default 50) or turns (default 20)' };

const SESSION_ACTIONS = {
  list: memoryAction<{ sessions: readonly SessionState[]; next: string | null }>('sessions.list', {
    description: 'list sessions, newest first, by user, adapter or similarity',
    flags: {
      '--user <id> userId': 'sessions of this user',
      '--adapter <name> adapter': 'sessions with this adapter',
      '--similar <text> similarTo': 'sessions similar to this text; nearest first',
      ...LIMIT_ROW,
      ...AFTER_ROW,
    },
    needsModel: ({ values }) => values['--similar'] !== undefined,
    show({ sessions, next }, { output }) {
      if (sessions.length === 0) return output.note('no sessions');
      const rows = sessions.map(({ sessionId, userId, activeAdapter, turnCount, lastActiveMs }) => [
        dateOf(lastActiveMs),
        String(turnCount),
        userId ?? '–',
        activeAdapter ?? '–',
        sessionId,
      ]);
      output.table(['LAST ACTIVE', 'TURNS', 'USER', 'ADAPTER', 'SESSION'], rows);
      noteNextPage(output, next);
    },
  }),
  show: memoryAction<{ session: SessionState; turns: readonly SessionTurn[] }>('sessions.show', {
    args: '<id>',
    keys: ['sessionId'],
    description: 'show the newest turns of a session',
    flags: LIMIT_ROW,
    show({ session: { sessionId, turnCount, lastActiveMs }, turns }, { io, output }) {
      output.lines(`${oneLine(sessionId, 80)}: ${turnCount} turns, last ${dateOf(lastActiveMs)}`);
      const width = columnsOf(io) - 4;
      for (const { turn, createdMs, query, answer } of turns.toReversed()) {
        output.lines(
          `\n${turn + 1}  ${dateOf(createdMs)}\n  > ${oneLine(query, width)}\n  < ${oneLine(answer, width)}`,
        );
      }
    },
  }),
  rm: memoryAction('sessions.rm', {
    args: '<id>',
    keys: ['sessionId'],
    description: 'delete a session and its turns',
    show: (_, { output, args }) => output.lines(`removed ${oneLine(args[1]!, 80)}`),
  }),
};

export const { flags, help, run } = actionCommand('sessions', SESSION_ACTIONS, {
  common: CLIENT_FLAGS,
  notes:
    'These sessions are conversations stored in the memory. The sessions of the KV cache have the same name but are ' +
    'unrelated; GET /admin/sessions/TENANT on the server lists them.',
});
