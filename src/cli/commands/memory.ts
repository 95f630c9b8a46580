import { RuvLLMError } from '../../core/errors.ts';
import { actionCommand, type Actions, foreignFlag } from '../actions.ts';
import { collectOptions, defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { memoryAction, memoryClientAction, OUTPUT_ROW, SIMILARITY_ROW } from '../memory/action.ts';
import { CLIENT_FLAGS, FOLDER_NOTE, ifForbidden, openClient } from '../memory/client.ts';
import { INSPECT_ACTIONS } from '../memory/inspect-actions.ts';
import { readCondition, readObject, TIME_ROWS } from '../memory/readers.ts';
import { rotateKey, ROTATE_FLAGS } from '../memory/rotate-key.ts';
import { columnsOf, dateOf, oneLine } from '../memory/show.ts';
import { exportLines, readBatches } from '../memory/transfer.ts';
import { readArgumentOrInput } from '../read-input.ts';
import { usageError } from '../usage-error.ts';
import { readLifetime } from '../values.ts';

interface SearchResult {
  readonly results: readonly { id: string; kind: string; text: string; score: number; createdMs: number }[];
  readonly context: { readonly text: string } | null;
}

interface ImportResult {
  readonly numAdded: number;
  readonly numReplaced: number;
  readonly numRefused: number;
  readonly numEmbedded: number;
  readonly refused: readonly { index: number; reason: string }[];
}

interface Stats {
  readonly tenant: string;
  readonly numRecords: Readonly<Record<string, number>>;
  readonly numEdges: number;
  readonly numVectors: number;
  readonly space: string | null;
  readonly embedder: string | null;
  readonly reindex: { readonly numDone: number; readonly numTotal: number } | null;
  readonly isDegraded: boolean;
  readonly health: { readonly diskBytes: number; readonly degraded: string | null } | null;
}

/** Refused lines printed one by one. */
const MAX_REASONS = 10;
const KINDS_ROW = { '--kind <kind>... kinds': 'only records of this kind (repeatable)' };
const ADD_FLAGS = defineFlags({
  '--kind <kind> kind': 'document, fact, query, qa-pair, concept, pattern …',
  '--source <name> source': 'source of the text',
  '--topic <name> topic': 'topic of the text',
  '--quality <x> quality': 'quality, 0 to 1',
  '--metadata <json> metadata': ['additional data as a JSON object', readObject],
  '--expires-in <seconds>': ['delete the record after this time', readLifetime],
});

const MEMORY_ACTIONS: Actions = {
  add: memoryClientAction({
    args: '[texts...]',
    description: 'store texts, each as a record; without texts, all of stdin as one',
    flags: ADD_FLAGS,
    needsModel: () => true,
    canCreate: true,
    async run(client, context, args) {
      const { output, values } = context;
      const texts = args.length > 0 ? args : [await readArgumentOrInput(undefined, context)];
      const lifeMs = values['--expires-in'] as number | undefined;
      const expiry = lifeMs === undefined ? {} : { expiresMs: Math.ceil(Date.now() + lifeMs) };
      const attributes = { ...collectOptions(ADD_FLAGS, values), ...expiry };
      const ids: string[] = [];
      for (const text of texts) ids.push((await client.call<{ id: string }>('memory.add', { text, ...attributes })).id);
      output.document({ ids });
      output.lines(ids.join('\n'));
    },
  }),
  search: memoryAction<SearchResult>('memory.search', {
    args: '<query>',
    keys: ['text'],
    description: 'search documents, requests, sessions and policies by similarity',
    flags: {
      ...KINDS_ROW,
      '--where <field=value>... filter': ['filter by a field; also !=, <, <=, >, >= (repeatable)', readCondition],
      ...TIME_ROWS,
      '--k k': 'number of results',
      ...SIMILARITY_ROW,
      '--hops <n> expandHops': 'also return records linked within n steps',
      '--token-budget tokenBudget': 'pack the results into at most n tokens',
    },
    needsModel: () => true,
    show({ results, context }, { io, output }) {
      if (context !== null) return output.text(context.text);
      if (results.length === 0) return output.note('no records match');
      const width = columnsOf(io) - 4;
      for (const { id, kind, score, createdMs, text } of results) {
        output.lines(`${score.toFixed(3)}  ${id}  ${dateOf(createdMs)}  ${kind}\n    ${oneLine(text, width)}`);
      }
    },
  }),
  stats: memoryAction<Stats>('memory.stats', {
    description: 'show the record counts of a tenant and the state of the memory',
    extend: async (client) => ({ health: await client.call<object>('memory.health', {}).catch(ifForbidden) }),
    show({ tenant, numRecords, numEdges, numVectors, space, embedder, reindex, isDegraded, health }, { output }) {
      const rows: [string, string | null][] = [
        ['tenant', tenant],
        ...Object.entries(numRecords).map(([kind, count]): [string, string] => [`  ${kind}`, String(count)]),
        ['edges', String(numEdges)],
        ['vectors', String(numVectors)],
        ['embedder', embedder],
        ['re-indexing', reindex && `${reindex.numDone} of ${reindex.numTotal} records`],
        ['space', space],
        ['on disk', health && formatBytes(health.diskBytes)],
        ['degraded', isDegraded ? (health?.degraded ?? 'yes') : null],
      ];
      output.details(rows.filter((row): row is [string, string] => row[1] !== null));
    },
  }),
  export: memoryClientAction({
    description: 'write all records as JSON lines, oldest first',
    flags: defineFlags({
      ...OUTPUT_ROW,
      ...KINDS_ROW,
      '--vectors includeVectors': 'include embeddings; otherwise an import computes them again',
    }),
    run: (client, context) => exportLines(client, context, 'memory.export', 'records'),
  }),
  import: memoryClientAction({
    args: '[file]',
    description: 'import exported records from a file or stdin; ids are kept',
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
  }),
  rm: memoryClientAction({
    args: '<ids...>',
    description: 'delete records',
    async run(client, { output }, ids) {
      const { numRemoved } = await client.call<{ numRemoved: number }>('memory.remove', { ids });
      if (numRemoved === 0) throw new RuvLLMError('not_found', `record ${ids.join(', ')} not found`);
      output.document({ numRemoved });
      output.lines(`${numRemoved} removed`);
    },
  }),
  ...INSPECT_ACTIONS,
  'rotate-key': {
    args: '',
    description:
      'encrypt the memory with a new master key: a folder that no process has open, a database or, with --url, a running server',
    flags: ROTATE_FLAGS,
    run: rotateKey,
  },
  'erase-tenant': {
    args: '<tenant>',
    description: 'erase a tenant permanently; --confirm repeats its name',
    flags: defineFlags({ '--confirm <tenant>': 'the name again; erasing cannot be undone' }),
    async run(context, [tenant]) {
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

export const { flags, help, run } = actionCommand('memory', MEMORY_ACTIONS, {
  common: CLIENT_FLAGS,
  notes: `${FOLDER_NOTE} Times are 2026-11-15, 2026-11-15T10:00Z or 7d (ago).`,
});
