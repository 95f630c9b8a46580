import type { FactReport } from '../../memory/agents/agent-memory.ts';
import type { AgentContext } from '../../memory/agents/recall.ts';
import { voiceOf } from '../../memory/agents/render.ts';
import type { Fact } from '../../memory/agents/types.ts';
import type { WorkingNote } from '../../memory/agents/working.ts';
import type { CachedCall, ToolCacheStats } from '../../memory/tool-cache/tool-cache.ts';
import type { Actions } from '../actions.ts';
import { formatBytes } from '../format.ts';
import { AFTER_ROW, memoryAction, noteNextPage } from './action.ts';
import { columnsOf, dateOf, oneLine } from './show.ts';

const USER_ROW = { '--user userId': 'the user whose memory it is' };
const SESSION_ROW = { '--session sessionId': 'the session in progress, for its notes' };
const LIMIT_ROW = { '--limit limit': 'maximum number of results' };

const statementOf = ({ subject, attribute, polarity, value }: Fact): string =>
  `${subject}: ${attribute} ${polarity} ${value}`;
const originOf = (fact: Fact): string =>
  `said by ${voiceOf(fact)}, session ${JSON.stringify(fact.sessionId)}, message ${fact.turn}, ${dateOf(fact.saidMs)}`;

const NOTES = {
  args: '<session>',
  keys: ['sessionId'],
  flags: USER_ROW,
} as const;

/** Actions of `ruvllm memory` for facts, notes and cached tool results of agents. */
export const AGENT_ACTIONS: Actions = {
  recall: memoryAction<AgentContext>('agents.recall', {
    args: '<question>',
    keys: ['text'],
    description: 'show what agents recall for a question: notes, facts, messages and patterns, with their sources',
    flags: { ...USER_ROW, ...SESSION_ROW, '--token-budget tokenBudget': 'maximum tokens' },
    needsModel: () => true,
    canOmitModel: true,
    show({ text, sources, numLeftOut }, { output }) {
      if (text === '') return output.note('nothing recalled');
      output.text(text);
      for (const { number, id, tier } of sources) output.note(`[${number}] ${tier} ${id}`);
      if (numLeftOut > 0) output.note(`${numLeftOut} more did not fit into the budget`);
    },
  }),
  facts: memoryAction<{ facts: (Fact & { strength: number })[]; next: string | null }>('facts.list', {
    description: 'list the facts that agents learned, newest first',
    flags: { ...USER_ROW, ...LIMIT_ROW, ...AFTER_ROW },
    show({ facts, next }, { io, output }) {
      if (facts.length === 0) return output.note('no facts');
      const width = columnsOf(io) - 4;
      for (const fact of facts) {
        const state = fact.isPinned ? 'pinned' : `strength ${fact.strength.toFixed(2)}`;
        output.lines(
          `${fact.id}  ${state}  ${oneLine(originOf(fact), width)}\n    ${oneLine(statementOf(fact), width)}`,
        );
      }
      noteNextPage(output, next);
    },
  }),
  why: memoryAction<FactReport>('facts.why', {
    args: '<id>',
    keys: ['id'],
    description: 'show where a fact came from, what it replaced and when it was used',
    show({ fact, strength, message, replaced, replacedBy }, { io, output }) {
      const width = columnsOf(io) - 12;
      output.lines(oneLine(statementOf(fact), width));
      output.details([
        ['source', oneLine(originOf(fact), width)],
        ['message', message === null ? 'erased' : oneLine(JSON.stringify(message), width)],
        ['state', replacedBy === null ? 'current' : `replaced by ${oneLine(statementOf(replacedBy), width)}`],
        ['strength', fact.isPinned ? 'pinned' : strength.toFixed(2)],
        ['used', fact.numUses === 0 ? 'never' : `${fact.numUses} times, last ${dateOf(fact.usedMs[0]!)}`],
        ...replaced.map((old): [string, string] => [
          'replaced',
          `${oneLine(statementOf(old), width)} (${originOf(old)})`,
        ]),
      ]);
    },
  }),
  pin: memoryAction<{ fact: Fact }>('facts.pin', {
    args: '<id>',
    keys: ['id'],
    description: 'keep a fact from being forgotten',
    show: ({ fact }, { output }) => output.lines(`pinned: ${oneLine(statementOf(fact), 200)}`),
  }),
  unpin: memoryAction<{ fact: Fact }>('facts.pin', {
    args: '<id>',
    keys: ['id'],
    description: 'let a pinned fact be forgotten again',
    input: () => ({ isPinned: false }),
    show: ({ fact }, { output }) => output.lines(`no longer pinned: ${oneLine(statementOf(fact), 200)}`),
  }),
  notes: memoryAction<{ notes: WorkingNote[] }>('notes.list', {
    ...NOTES,
    description: 'list the notes of the task of a session',
    show({ notes }, { io, output }) {
      if (notes.length === 0) return output.note('no notes');
      for (const { text, notedMs } of notes) output.lines(`${dateOf(notedMs)}  ${oneLine(text, columnsOf(io) - 20)}`);
    },
  }),
  note: memoryAction<{ notes: WorkingNote[] }>('notes.add', {
    ...NOTES,
    args: '<session> <text>',
    keys: ['sessionId', 'text'],
    description: 'add a note to the task of a session; every prompt of it that remembers has the notes',
    canCreate: true,
    show: ({ notes }, { output }) => output.lines(`${notes.length} ${notes.length === 1 ? 'note' : 'notes'}`),
  }),
  'tool-cache': memoryAction<{ calls: CachedCall[]; next: string | null }>('tool-cache.list', {
    description: 'list the cached calls of read-only tools, newest first',
    flags: { '--tool tool': 'only calls of this tool', ...LIMIT_ROW, ...AFTER_ROW },
    show({ calls, next }, { io, output }) {
      if (calls.length === 0) return output.note('no cached calls');
      output.table(
        ['TOOL', 'ARGUMENTS', 'SIZE', 'STORED'],
        calls.map(({ tool, args, sizeBytes, storedMs }) => [
          tool,
          oneLine(JSON.stringify(args), columnsOf(io) - 50),
          formatBytes(sizeBytes),
          dateOf(storedMs),
        ]),
      );
      noteNextPage(output, next);
    },
  }),
  'tool-cache-stats': memoryAction<ToolCacheStats>('tool-cache.stats', {
    description: 'count the calls of tools by where their results came from, since the process started',
    show: (stats, { output }) =>
      output.details([
        ['stored', String(stats.numStored)],
        ['calls', String(stats.numCalls)],
        ['run', String(stats.numRun)],
        ['same arguments', String(stats.numExact)],
        ['similar arguments', String(stats.numSimilar)],
        ['joined', String(stats.numJoined)],
        ['too old', String(stats.numStale)],
        ['side effects', String(stats.numUncacheable)],
      ]),
  }),
  'tool-cache-clear': memoryAction<{ numCleared: number }>('tool-cache.clear', {
    description: 'delete the cached results of a tool, or of all',
    flags: { '--tool tool': 'only results of this tool' },
    show: ({ numCleared }, { output }) => output.lines(`${numCleared} deleted`),
  }),
};
