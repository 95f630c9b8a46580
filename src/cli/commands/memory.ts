import { RuvLLMError } from '../../core/errors.ts';
import { actionRunner, type Actions, flagsOf, helpOf, pick } from '../memory/action.ts';
import { LOOK_ACTIONS } from '../memory/look-actions.ts';
import { readCondition, readObject, readTime } from '../memory/readers.ts';
import { rotateKey, ROTATE_FLAGS } from '../memory/rotate-key.ts';
import { columnsOf, dateOf, oneLine } from '../memory/show.ts';
import { readBatches, writePages } from '../memory/transfer.ts';
import { formatBytes } from '../format.ts';
import { readArgumentOrInput } from '../read-input.ts';
import { usageError } from '../usage-error.ts';
import { readInteger, readNumber, readSeconds } from '../values.ts';

interface SearchResult {
  readonly results: readonly { id: string; kind: string; text: string; score: number; createdMs: number }[];
  readonly context: { readonly text: string } | null;
}

interface ImportResult {
  readonly numAdded: number;
  readonly numReplaced: number;
  readonly numRefused: number;
  readonly numEmbedded: number;
  readonly numEdges: number;
  readonly refused: readonly { index: number; id: string | null; reason: string }[];
}

interface Stats {
  readonly tenant: string;
  readonly numRecords: Readonly<Record<string, number>>;
  readonly numEdges: number;
  readonly numVectors: number;
  readonly space: string | null;
  readonly isDegraded: boolean;
}

/** Refusals that are told one by one. */
const MAX_REASONS = 10;
const OUTPUT_FLAG = { name: '--output', value: 'file', description: 'write there instead of stdout' } as const;
const KIND_FLAG = { name: '--kind', value: 'kind', description: 'document, fact, query, qa-pair, concept, pattern …' };
const KINDS_FLAG = { ...KIND_FLAG, isList: true, description: 'only of this kind (repeatable)' };

/** What `ruvllm memory` does. */
export const MEMORY_ACTIONS: Actions = {
  add: {
    args: '[texts...]',
    description: 'remember texts, each by itself; without any, all of stdin as one',
    flags: [
      KIND_FLAG,
      { name: '--source', value: 'name', description: 'where it comes from' },
      { name: '--topic', value: 'name', description: 'what it is about' },
      { name: '--quality', value: 'n', read: readNumber, description: '0 to 1' },
      { name: '--metadata', value: 'json', read: readObject, description: 'an object of your own' },
      { name: '--expires-in', value: 'seconds', read: readSeconds, description: 'forget it after that' },
    ],
    needsModel: () => true,
    isFirst: true,
    async run(client, context, words) {
      const { output, values } = context;
      const texts = words.length > 0 ? words : [await readArgumentOrInput(undefined, context)];
      const names = { '--kind': 'kind', '--source': 'source', '--topic': 'topic', '--quality': 'quality', '--metadata': 'metadata' }; // prettier-ignore
      const lifeMs = values['--expires-in'] as number | undefined;
      const more = { ...pick(context, names), ...(lifeMs === undefined ? {} : { expiresMs: Math.ceil(Date.now() + lifeMs) }) }; // prettier-ignore
      const ids: string[] = [];
      for (const text of texts) ids.push((await client.call<{ id: string }>('memory.add', { text, ...more })).id);
      output.document({ ids });
      output.lines(ids.join('\n'));
    },
  },
  search: {
    args: '<query>',
    description: 'find by meaning, over documents, requests, sessions and policies alike',
    flags: [
      KINDS_FLAG,
      { name: '--where', value: 'field=value', isList: true, read: readCondition, description: 'also !=, <, <=, >, >= (repeatable)' }, // prettier-ignore
      { name: '--from', value: 'time', read: readTime, description: 'not before: 2026-11-15, or 7d (ago)' },
      { name: '--to', value: 'time', read: readTime, description: 'before' },
      { name: '--k', value: 'n', read: readInteger, description: 'how many; default 10' },
      { name: '--min-similarity', value: 'n', read: readNumber, description: '-1 to 1' },
      {
        name: '--hops',
        value: 'n',
        read: readInteger,
        description: 'also what is linked with that, so many steps away',
      },
      {
        name: '--token-budget',
        value: 'n',
        read: readInteger,
        description: 'pack the results into a text of so many tokens',
      },
    ],
    needsModel: () => true,
    async run(client, context, [text]) {
      const { io, output } = context;
      const names = { '--kind': 'kinds', '--where': 'filter', '--from': 'fromMs', '--to': 'toMs', '--k': 'k', '--min-similarity': 'minSimilarity', '--hops': 'expandHops', '--token-budget': 'tokenBudget' }; // prettier-ignore
      const found = await client.call<SearchResult>('memory.search', { text, ...pick(context, names) });
      output.document(found);
      if (found.context !== null) return output.text(found.context.text);
      if (found.results.length === 0) return output.note('nothing was found');
      const room = columnsOf(io) - 4;
      for (const { id, kind, score, createdMs, text: words } of found.results) {
        output.lines(`${score.toFixed(3)}  ${id}  ${dateOf(createdMs)}  ${kind}\n    ${oneLine(words, room)}`);
      }
    },
  },
  stats: {
    args: '',
    description: 'what a tenant has in the memory, and how the memory is',
    flags: [],
    async run(client, { output }) {
      const stats = await client.call<Stats>('memory.stats', {});
      const health = await client.call<{ diskBytes: number; degraded: string | null }>('memory.health', {}).catch(ifForbidden); // prettier-ignore
      output.document({ ...stats, health });
      const rows: [string, string][] = [
        ['tenant', stats.tenant],
        ...Object.entries(stats.numRecords).map(([kind, count]): [string, string] => [`  ${kind}`, String(count)]),
        ['edges', String(stats.numEdges)],
        ['vectors', String(stats.numVectors)],
        ...(stats.space === null ? [] : [['space', stats.space] as [string, string]]),
        ...(health === null ? [] : [['on disk', formatBytes(health.diskBytes)] as [string, string]]),
        ...(stats.isDegraded ? [['degraded', health?.degraded ?? 'yes'] as [string, string]] : []),
      ];
      output.details(rows);
    },
  },
  export: {
    args: '',
    description: 'write everything as JSON lines, the oldest first',
    flags: [
      OUTPUT_FLAG,
      KINDS_FLAG,
      { name: '--vectors', value: null, description: 'with the vectors; without, an import makes them anew' },
    ],
    async run(client, context) {
      const { output, values } = context;
      const input = { ...pick(context, { '--kind': 'kinds' }), includeVectors: values['--vectors'] === true };
      const itemsOf = ({ records }: { records: object[]; next: unknown }) => records;
      const { count, items } = await writePages(client, context, { operation: 'memory.export', input, itemsOf, label: 'exporting' }); // prettier-ignore
      output.document({ count, ...(items === null ? { path: values['--output'] } : { records: items }) });
      output.note(`${count} records`);
    },
  },
  import: {
    args: '[file]',
    description: 'write what was exported, from a file or from stdin; ids stay',
    flags: [],
    needsModel: () => true,
    isFirst: true,
    async run(client, context, [path]) {
      const { output } = context;
      const total = { numAdded: 0, numReplaced: 0, numRefused: 0, numEmbedded: 0 };
      const reasons: string[] = [];
      for await (const { lines, records } of readBatches(path, context)) {
        const result = await client.call<ImportResult>('memory.import', { records });
        for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += result[key];
        for (const { index, reason } of result.refused) reasons.push(`line ${lines[index]}: ${reason}`);
      }
      const counts = `${total.numAdded} added, ${total.numReplaced} replaced, ${total.numRefused} refused`;
      if (total.numRefused > 0) {
        for (const reason of reasons.slice(0, MAX_REASONS)) output.note(`refused ${reason}`);
        throw new RuvLLMError('invalid_option', `${counts}: ${reasons[0]}`, {
          data: { ...total, reasons: reasons.slice(0, 100) },
        });
      }
      output.document({ ...total });
      output.lines(counts);
    },
  },
  rm: {
    args: '<ids...>',
    description: 'forget what was added',
    flags: [],
    async run(client, { output }, ids) {
      const { numRemoved } = await client.call<{ numRemoved: number }>('memory.remove', { ids });
      if (numRemoved === 0) throw new RuvLLMError('not_found', `there is no record ${ids.join(', ')}`);
      output.document({ numRemoved });
      output.lines(`${numRemoved} removed`);
    },
  },
  ...LOOK_ACTIONS,
  'rotate-key': {
    args: '',
    description:
      'seal the memory with another master key: a folder nobody has open, a database, or (--url) a server that goes on',
    flags: ROTATE_FLAGS,
    runAlone: rotateKey,
  },
  'erase-tenant': {
    args: '<tenant>',
    description: 'forget a tenant for good; --confirm says its name again',
    flags: [{ name: '--confirm', value: 'tenant', description: 'the same name: there is no way back' }],
    async runAlone(context, [tenant]) {
      const { output, values } = context;
      if (values['--confirm'] !== tenant)
        throw usageError(`erasing ${tenant!} needs --confirm ${tenant!}`, '--confirm');
      if (values['--tenant'] !== undefined) throw usageError('the tenant is named once, and in --confirm', '--tenant');
      const { openClient } = await import('../memory/client.ts');
      const client = await openClient(
        { ...context, values: { ...values, '--tenant': tenant } },
        { needsModel: false, canCreate: false },
      );
      try {
        output.document(await client.call<object>('tenants.erase', { confirm: tenant }));
        output.lines(`${oneLine(tenant!, 80)} is erased`);
      } finally {
        await client.close();
      }
    },
  },
};

/** A key that may not see the whole sees its part. */
export function ifForbidden(error: unknown): null {
  if (error instanceof RuvLLMError && error.data['status'] === 403) return null;
  throw error;
}

export const MEMORY_FLAGS = flagsOf(MEMORY_ACTIONS);
export const MEMORY_HELP = helpOf(
  MEMORY_ACTIONS,
  'A folder has one user at a time: while ruvllm serve has it open, use --url. Times are 2026-11-15, 2026-11-15T10:00Z or 7d (ago).',
);
export const memory = actionRunner('memory', MEMORY_ACTIONS);
