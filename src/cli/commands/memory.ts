import { RuvLLMError } from '../../core/errors.ts';
import {
  actionRunner,
  type Actions,
  flagsOf,
  foreignFlag,
  helpOf,
  K_FLAG,
  MIN_SIMILARITY_FLAG,
  OUTPUT_FLAG,
  pick,
} from '../memory/action.ts';
import { FOLDER_NOTE, ifForbidden, openClient } from '../memory/client.ts';
import { INSPECT_ACTIONS } from '../memory/inspect-actions.ts';
import { readCondition, readObject, TIME_FLAGS } from '../memory/readers.ts';
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

/** Refused lines printed one by one. */
const MAX_REASONS = 10;
const KIND_FLAG = { name: '--kind', value: 'kind', description: 'document, fact, query, qa-pair, concept, pattern …' };
const KINDS_FLAG = { ...KIND_FLAG, isList: true, description: 'only records of this kind (repeatable)' };

export const MEMORY_ACTIONS: Actions = {
  add: {
    args: '[texts...]',
    description: 'store texts, each as a record; without texts, all of stdin as one',
    flags: [
      KIND_FLAG,
      { name: '--source', value: 'name', description: 'source of the text' },
      { name: '--topic', value: 'name', description: 'topic of the text' },
      { name: '--quality', value: 'n', read: readNumber, description: 'quality, 0 to 1' },
      { name: '--metadata', value: 'json', read: readObject, description: 'additional data as a JSON object' },
      { name: '--expires-in', value: 'seconds', read: readSeconds, description: 'delete the record after this time' },
    ],
    needsModel: () => true,
    canCreate: true,
    async run(client, context, args) {
      const { output, values } = context;
      const texts = args.length > 0 ? args : [await readArgumentOrInput(undefined, context)];
      const names = { '--kind': 'kind', '--source': 'source', '--topic': 'topic', '--quality': 'quality', '--metadata': 'metadata' }; // prettier-ignore
      const lifeMs = values['--expires-in'] as number | undefined;
      const attributes = { ...pick(context, names), ...(lifeMs === undefined ? {} : { expiresMs: Math.ceil(Date.now() + lifeMs) }) }; // prettier-ignore
      const ids: string[] = [];
      for (const text of texts) ids.push((await client.call<{ id: string }>('memory.add', { text, ...attributes })).id);
      output.document({ ids });
      output.lines(ids.join('\n'));
    },
  },
  search: {
    args: '<query>',
    description: 'search documents, requests, sessions and policies by similarity',
    flags: [
      KINDS_FLAG,
      { name: '--where', value: 'field=value', isList: true, read: readCondition, description: 'filter by a field; also !=, <, <=, >, >= (repeatable)' }, // prettier-ignore
      ...TIME_FLAGS,
      K_FLAG,
      MIN_SIMILARITY_FLAG,
      { name: '--hops', value: 'n', read: readInteger, description: 'also return records linked within n steps' },
      { name: '--token-budget', value: 'n', read: readInteger, description: 'pack the results into at most n tokens' },
    ],
    needsModel: () => true,
    async run(client, context, [text]) {
      const { io, output } = context;
      const names = { '--kind': 'kinds', '--where': 'filter', '--from': 'fromMs', '--to': 'toMs', '--k': 'k', '--min-similarity': 'minSimilarity', '--hops': 'expandHops', '--token-budget': 'tokenBudget' }; // prettier-ignore
      const result = await client.call<SearchResult>('memory.search', { text, ...pick(context, names) });
      output.document(result);
      if (result.context !== null) return output.text(result.context.text);
      if (result.results.length === 0) return output.note('no records match');
      const width = columnsOf(io) - 4;
      for (const { id, kind, score, createdMs, text: recordText } of result.results) {
        output.lines(`${score.toFixed(3)}  ${id}  ${dateOf(createdMs)}  ${kind}\n    ${oneLine(recordText, width)}`);
      }
    },
  },
  stats: {
    args: '',
    description: 'show the record counts of a tenant and the state of the memory',
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
    description: 'write all records as JSON lines, oldest first',
    flags: [
      OUTPUT_FLAG,
      KINDS_FLAG,
      { name: '--vectors', value: null, description: 'include embeddings; otherwise an import computes them again' },
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
    description: 'import exported records from a file or stdin; ids are kept',
    flags: [],
    needsModel: () => true,
    canCreate: true,
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
    description: 'delete records',
    flags: [],
    async run(client, { output }, ids) {
      const { numRemoved } = await client.call<{ numRemoved: number }>('memory.remove', { ids });
      if (numRemoved === 0) throw new RuvLLMError('not_found', `record ${ids.join(', ')} not found`);
      output.document({ numRemoved });
      output.lines(`${numRemoved} removed`);
    },
  },
  ...INSPECT_ACTIONS,
  'rotate-key': {
    args: '',
    description:
      'encrypt the memory with a new master key: a folder that no process has open, a database or, with --url, a running server',
    flags: ROTATE_FLAGS,
    runAlone: rotateKey,
  },
  'erase-tenant': {
    args: '<tenant>',
    description: 'erase a tenant permanently; --confirm repeats its name',
    flags: [{ name: '--confirm', value: 'tenant', description: 'the name again; erasing cannot be undone' }],
    async runAlone(context, [tenant]) {
      const { output, values } = context;
      if (values['--confirm'] !== tenant)
        throw usageError(`erasing ${tenant!} requires --confirm ${tenant!}`, '--confirm');
      if (values['--tenant'] !== undefined) throw foreignFlag('--tenant', 'memory', 'erase-tenant');
      const client = await openClient(
        { ...context, values: { ...values, '--tenant': tenant } },
        { needsModel: false, canCreate: false },
      );
      try {
        output.document(await client.call<object>('tenants.erase', { confirm: tenant }));
        output.lines(`erased ${oneLine(tenant!, 80)}`);
      } finally {
        await client.close();
      }
    },
  },
};

export const MEMORY_FLAGS = flagsOf(MEMORY_ACTIONS);
export const MEMORY_HELP = helpOf(
  MEMORY_ACTIONS,
  `${FOLDER_NOTE} Times are 2026-11-15, 2026-11-15T10:00Z or 7d (ago).`,
);
export const memory = actionRunner('memory', MEMORY_ACTIONS);
