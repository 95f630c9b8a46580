import type { ErasureReport } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { actionCommand, type Actions, foreignFlag } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { describePlace } from '../../memory/documents/describe-place.ts';
import type { PackedContext, SourcePosition } from '../../memory/search/pack.ts';
import type { DocumentInfo, StoredChunk } from '../../memory/documents/documents.ts';
import { collectOptions, defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import {
  AFTER_ROW,
  memoryAction,
  memoryClientAction,
  noteNextPage,
  OUTPUT_ROW,
  SIMILARITY_ROW,
} from '../memory/action.ts';
import { AGENT_ACTIONS } from '../memory/agent-actions.ts';
import { BACKUP_ACTIONS } from '../memory/backup-actions.ts';
import { createDocumentAdder } from '../memory/add-documents.ts';
import { CLIENT_FLAGS, FOLDER_NOTE, openClient } from '../memory/client.ts';
import { ifForbidden } from '../servers/ask-server.ts';
import type { MemoryClient } from '../memory/client-types.ts';
import { kindOfPath } from '../memory/document-files.ts';
import { INSPECT_ACTIONS } from '../memory/inspect-actions.ts';
import { readCondition, readObject, TIME_ROWS } from '../memory/readers.ts';
import { columnsOf, dateOf, kindName, oneLine } from '../memory/show.ts';
import { exportInput, exportLines, readBatches } from '../memory/transfer.ts';
import { watchFolder } from '../memory/watch-folder.ts';
import { readArgumentOrInput, readInput } from '../read-input.ts';
import { conflictError, requiresError, usageError } from '../usage-error.ts';
import { readLifetime } from '../values.ts';

interface ListedChunk extends StoredChunk {
  readonly requests: readonly object[];
}

interface SearchResult {
  readonly results: readonly {
    id: string;
    kind: string;
    text: string;
    score: number;
    similarity?: number | null;
    lexical?: number | null;
    createdMs: number;
    position?: SourcePosition;
  }[];
  readonly context: (Pick<PackedContext, 'text' | 'sources' | 'numTokens' | 'numLeftOut'> & { readonly isEstimated?: boolean }) | null; // prettier-ignore
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
  '--watch': 'follow the changes of a folder until Ctrl-C',
});
const ROTATE_FLAGS = defineFlags({
  '--new-key-file <file>':
    'file with the new key of 32 bytes, created if missing; or set RUVLLM_NEW_MASTER_KEY or RUVLLM_NEW_PASSPHRASE',
});
/** Flags of texts, which documents do not have. */
const TEXT_FLAGS = ['--kind', '--quality', '--metadata'];
/** Words that name a file: a mistyped path must not become a text. */
const LIKE_A_PATH = /^[^\s\\/]*[\\/]\S*$|^\S+\.[a-z][a-z0-9]{0,4}$/i;

type InputKind = 'file' | 'folder' | 'stdin' | 'text';

async function kindOfInput(input: string): Promise<InputKind> {
  if (input === '-') return 'stdin';
  const kind = await kindOfPath(input);
  if (kind !== null) return kind;
  if (!LIKE_A_PATH.test(input)) return 'text';
  throw new RuvLLMError('not_found', `${input} not found`, {
    data: { path: input, next: `to store these words as a text: echo ${JSON.stringify(input)} | ruvllm memory add` },
  });
}

async function addTexts(
  client: MemoryClient,
  context: CommandContext,
  texts: readonly string[],
  expiry: object,
): Promise<void> {
  const { output, values } = context;
  const attributes = { ...collectOptions(ADD_FLAGS, values), ...expiry };
  const ids: string[] = [];
  for (const text of texts) ids.push((await client.call<{ id: string }>('memory.add', { text, ...attributes })).id);
  output.document({ ids });
  output.lines(ids.join('\n'));
}

interface Input {
  readonly input: string;
  readonly kind: InputKind;
}

async function addInputs(
  client: MemoryClient,
  context: CommandContext,
  inputs: readonly Input[],
  expiry: { expiresMs?: number },
): Promise<void> {
  const { io, output, values } = context;
  const source = values['--source'] as string | undefined;
  const topic = values['--topic'] as string | undefined;
  const isWatch = values['--watch'] === true;
  const text = inputs.find(({ kind }) => kind === 'text');
  if (text !== undefined) throw usageError(`${JSON.stringify(text.input.slice(0, 80))} is not a file; add texts and files with two commands`); // prettier-ignore
  if (source !== undefined && inputs.some(({ kind }) => kind !== 'stdin'))
    throw conflictError('--source', 'a file or folder');
  if (isWatch && (inputs.length !== 1 || inputs[0]!.kind !== 'folder')) throw requiresError('--watch', 'one folder');
  const adder = createDocumentAdder(client, context, { ...(topic === undefined ? {} : { topic }), ...expiry });
  const report = adder.emptyReport();
  for (const { input, kind } of inputs) {
    if (kind === 'file') await adder.addPath(input, report);
    else if (kind === 'stdin') {
      await adder.addContent({ name: source ?? 'stdin', content: await readInput(io.stdin, io.signal) }, report);
    } else {
      const files = await adder.addFolder(input, report);
      if (!isWatch) continue;
      io.acceptSignal?.();
      output.note(`watching ${input}; press Ctrl-C to stop`);
      await watchFolder(input, files, adder, context);
    }
  }
  output.document(report);
  if (report.refused.length === 0 || isWatch) return;
  const { name, reason } = report.refused[0]!;
  const counts = `${report.documents.length} added or unchanged, ${report.refused.length} refused`;
  throw new RuvLLMError('invalid_text', `${counts}: ${name}: ${reason}`, {
    data: { numRefused: report.refused.length },
  });
}

const ADD_ACTION = {
  args: '[inputs...]',
  description:
    'store files and folders as documents (text, Markdown, HTML, PDF, source code), - for stdin as a document, and other inputs as texts; without inputs, all of stdin as one text',
  flags: ADD_FLAGS,
  needsModel: () => true,
  canCreate: true,
} as const;

function expiryOf({ values }: CommandContext): { expiresMs?: number } {
  const lifeMs = values['--expires-in'] as number | undefined;
  return lifeMs === undefined ? {} : { expiresMs: Math.ceil(Date.now() + lifeMs) };
}

const ADD_TEXTS = memoryClientAction({
  ...ADD_ACTION,
  run: (client, context, texts) => addTexts(client, context, texts, expiryOf(context)),
});

const ADD_INPUTS = memoryClientAction({
  ...ADD_ACTION,
  async run(client, context, args) {
    const kinds = await Promise.all(args.map(kindOfInput));
    await addInputs(client, context, args.map((input, i) => ({ input, kind: kinds[i]! })), expiryOf(context)); // prettier-ignore
  },
});

const MEMORY_ACTIONS: Actions = {
  add: {
    ...ADD_TEXTS,
    // Checked before a memory or a model is opened.
    async run(context, args) {
      const { values } = context;
      const texts = args.length > 0 ? args : [await readArgumentOrInput(undefined, context)];
      if (texts.includes('')) throw usageError('memory add requires a text, but got an empty one');
      const kinds = await Promise.all(args.map(kindOfInput));
      if (kinds.every((kind) => kind === 'text')) {
        if (values['--watch'] === true) throw requiresError('--watch', 'a folder');
        return ADD_TEXTS.run(context, texts);
      }
      for (const flag of TEXT_FLAGS) if (values[flag] !== undefined) throw conflictError(flag, 'a file or folder');
      return ADD_INPUTS.run(context, args);
    },
  },
  documents: memoryAction<{ documents: DocumentInfo[]; next: string | null }>('documents.list', {
    description: 'list the documents, newest first',
    flags: { '--limit limit': 'maximum number of documents', ...AFTER_ROW },
    show({ documents, next }, { output }) {
      if (documents.length === 0) return output.note('no documents');
      output.table(
        ['ID', 'NAME', 'CHUNKS', 'SIZE', 'UPDATED'],
        documents.map(({ id, name, numChunks, sizeBytes, updatedMs, isComplete }) => [
          id,
          name,
          isComplete ? String(numChunks) : 'incomplete',
          formatBytes(sizeBytes),
          dateOf(updatedMs),
        ]),
      );
      noteNextPage(output, next);
    },
  }),
  document: memoryAction<{ document: DocumentInfo; chunks: ListedChunk[] }>('documents.get', {
    args: '<id>',
    keys: ['id'],
    description: 'show the chunks of a document, and how many requests each was a source of',
    show({ document, chunks }, { io, output }) {
      const width = columnsOf(io) - 4;
      output.lines(`${document.name}: ${document.numChunks} chunks, ${formatBytes(document.sizeBytes)}`);
      for (const { id, text, headings, requests, ...position } of chunks) {
        const uses =
          requests.length === 0 ? '' : `  ${requests.length} ${requests.length === 1 ? 'request' : 'requests'}`;
        const place = [describePlace(position), ...headings].join(' › ');
        output.lines(`${id}  ${oneLine(place, width - 36)}${uses}\n    ${oneLine(text, width)}`);
      }
    },
  }),
  search: memoryAction<SearchResult>('memory.search', {
    args: '<query>',
    keys: ['text'],
    description:
      'search documents, facts, sessions and policies by words and meaning; answers of the model with --kind',
    flags: {
      ...KINDS_ROW,
      '--where <field=value>... filter': ['filter by a field; also !=, <, <=, >, >= (repeatable)', readCondition],
      ...TIME_ROWS,
      '--turn turns': 'earlier message of the conversation, for a follow-up question',
      '--k k': 'number of results',
      ...SIMILARITY_ROW,
      '--hops <n> expandHops': 'also return records linked, or sharing a rare name, within n steps',
      '--token-budget tokenBudget': 'pack the results into at most n tokens; exact with --model, else estimated',
    },
    needsModel: () => true,
    canOmitModel: true,
    show({ results, context }, { io, output }) {
      if (results.length === 0) return output.note('no records match');
      if (context !== null) {
        const { numLeftOut, numTokens } = context;
        if (context.sources.length === 0) return output.note(`nothing fitted: ${numLeftOut} results, each longer than the budget`); // prettier-ignore
        output.text(context.text);
        if (context.isEstimated === true) output.note(`${numTokens} tokens, estimated at four characters each; --model MODEL counts them`); // prettier-ignore
        const cuts = context.sources.filter(({ isCut }) => isCut).map(({ number }) => number);
        if (cuts.length > 0) output.note(`cut to its best part: [${cuts.join('], [')}]`);
        if (numLeftOut > 0)
          output.note(`${numLeftOut} more results did not fit into the budget (${numTokens} tokens used)`);
        return;
      }
      const width = columnsOf(io) - 4;
      for (const { id, kind, score, similarity, lexical, createdMs, text, position } of results) {
        const place = position === undefined ? [] : [oneLine(`${position.name}, ${describePlace(position)}`, 100)];
        const reasons = [
          ...(similarity == null ? [] : [`meaning ${similarity.toFixed(3)}`]),
          ...(lexical == null ? [] : [`words ${lexical.toFixed(3)}`]),
        ];
        const head = [score.toFixed(3), id, dateOf(createdMs), kindName(kind), ...place, reasons.join(', ')];
        output.lines(`${head.join('  ').trimEnd()}\n    ${oneLine(text, width)}`);
      }
    },
  }),
  stats: memoryAction<Stats>('memory.stats', {
    description: 'show the record counts of a tenant and the state of the memory',
    extend: async (client) => ({ health: await client.call<object>('memory.health', {}).catch(ifForbidden) }),
    show({ tenant, numRecords, numEdges, numVectors, space, embedder, reindex, isDegraded, health }, { output }) {
      const rows: [string, string | null][] = [
        ['tenant', tenant],
        ...Object.entries(numRecords).map(([kind, count]): [string, string] => [`  ${kindName(kind)}`, String(count)]),
        ['edges', String(numEdges)],
        ['vectors', String(numVectors)],
        ['embedder', embedder],
        ['re-indexing', reindex && `${reindex.numDone} of ${reindex.numTotal} records`],
        ['space', space],
        ['on disk', health && formatBytes(health.diskBytes)],
        ['degraded', isDegraded ? (health?.degraded ?? 'yes') : null],
      ];
      // Answers of older servers lack some.
      output.details(rows.filter((row): row is [string, string] => row[1] != null));
    },
  }),
  export: memoryClientAction({
    description: 'write all records as JSON lines, oldest first',
    flags: defineFlags({
      ...OUTPUT_ROW,
      ...KINDS_ROW,
      '--vectors includeVectors': 'include embeddings; otherwise an import computes them again',
    }),
    run: (client, context) => exportLines(client, context, 'memory.export', 'records', exportInput(context)),
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
  ...AGENT_ACTIONS,
  'rotate-key': {
    args: '',
    description:
      'encrypt the memory with a new master key: a folder that no process has open, a database or, with --url, a running server',
    flags: ROTATE_FLAGS,
    // Opens the memory's folder itself, with everything that belongs to it.
    run: async (context) => (await import('../memory/rotate-key.ts')).rotateKey(context),
  },
  'erase-tenant': {
    args: '<tenant>',
    description:
      'erase a tenant permanently, or one of its users or requests, with everything learned from it; --confirm repeats its name',
    flags: defineFlags({
      '--confirm <tenant>': 'the name again; erasing cannot be undone',
      '--user <id> userId': 'erase only this user',
      '--request <id> requestId': 'erase only this request, named by the id of its answer',
    }),
    async run(context, [tenant]) {
      const { output, values } = context;
      if (values['--confirm'] !== tenant)
        throw usageError(`erasing ${tenant!} requires --confirm ${tenant!}`, '--confirm');
      if (values['--user'] !== undefined && values['--request'] !== undefined)
        throw conflictError('--user', '--request');
      if (values['--tenant'] !== undefined) throw foreignFlag('--tenant', 'memory', 'erase-tenant');
      const client = await openClient(
        { ...context, values: { ...values, '--tenant': tenant } },
        { needsModel: false, canCreate: false },
      );
      try {
        const [userId, requestId] = [values['--user'], values['--request']] as (string | undefined)[];
        const which = {
          ...(userId === undefined ? {} : { userId }),
          ...(requestId === undefined ? {} : { requestId }),
        };
        const report = await client.call<ErasureReport>('tenants.erase', { confirm: tenant, ...which });
        output.document(report);
        for (const { name, numFound } of report.parts) output.note(`${name}: ${numFound} erased, 0 left`);
        const what = [...Object.values(which), tenant!].map((name) => oneLine(name, 80)).join(' of ');
        output.lines(`erased ${what}`);
      } finally {
        await client.close();
      }
    },
  },
};

export const { flags, help, run } = actionCommand(
  'memory',
  { ...MEMORY_ACTIONS, ...BACKUP_ACTIONS },
  {
    common: CLIENT_FLAGS,
    notes: `${FOLDER_NOTE} Times are 2026-11-15, 2026-11-15T10:00Z or 7d (ago).`,
  },
);
