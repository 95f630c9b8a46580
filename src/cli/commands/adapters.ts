import {
  type Adapter,
  type AdapterBase,
  MERGE_METHODS,
  mergeAdapters,
  type MergeOptions,
} from '../../adapters/index.ts';
import { readShape } from '../../models/shape.ts';
import { openModelFile } from '../../platform/node/open-model-file.ts';
import { readAdapter } from '../../platform/node/read-adapter.ts';
import type { CommandContext, CommandRunner, HelpParts } from '../command.ts';
import type { Flag } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { unknownAction } from '../memory/action.ts';
import { askServer, readServer } from '../memory/http-client.ts';
import { openHub } from '../open-hub.ts';
import { saveAdapter } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';
import { readInteger, readNumber } from '../values.ts';
import { TRAIN_FLAGS, trainAdapter } from './adapters-train.ts';

const SERVER_FLAGS = ['--url', '--api-key', '--model', '--tenant'];
const FILE_FLAGS = ['--model', '--type', '--name'];

export const ADAPTERS_FLAGS: readonly Flag[] = [
  { name: '--url', value: 'url', description: 'of the server; default http://127.0.0.1:8080' },
  { name: '--api-key', value: 'key', description: 'of the server (RUVLLM_API_KEY)' },
  {
    name: '--model',
    value: 'model',
    description: 'which model they are for: one of the server, or a file or reference',
  },
  { name: '--tenant', value: 'name', description: 'load or unload: only for the requests of this tenant' },
  { name: '--method', value: Object.keys(MERGE_METHODS).join('|'), description: 'merge: how; default linear' },
  {
    name: '--weight',
    value: 'n',
    isList: true,
    read: readNumber,
    description: 'merge: of each file, in their order (repeatable); default 1',
  },
  {
    name: '--rank',
    value: 'n',
    read: readInteger,
    description: 'merge or train: of the result; default the highest of them, or 4',
  },
  { name: '--density', value: 'n', read: readNumber, description: 'merge by ties or dare: share kept; default 0.5' },
  {
    name: '--seed',
    value: 'n',
    read: readInteger,
    description: 'merge by dare: of what is dropped; default 0. train: of the start; default 1',
  },
  { name: '--type', value: 'F32|F16', description: 'merge, export or train: how the file keeps numbers; default F32' },
  { name: '--name', value: 'name', description: 'merge, export or train: the name in the file' },
  ...TRAIN_FLAGS,
];

interface AdapterAction {
  readonly args: string;
  readonly description: string;
  readonly flags: readonly string[];
  readonly numWords: readonly [number, number];
  run(context: CommandContext, words: readonly string[]): Promise<void>;
}

interface ServedAdapter {
  readonly id: string;
  readonly tenant: string | null;
  readonly rank: number;
  readonly num_matrices: number;
  readonly size_bytes: number;
  readonly content_hash: string;
}

async function ask(context: CommandContext, method: string, path: string, body: object | null): Promise<unknown> {
  const values = { '--url': 'http://127.0.0.1:8080', ...context.values };
  const server = readServer({ io: context.io, values });
  const url = new URL(`${server.base}${path}`);
  const tenant = values['--tenant' as keyof typeof values] as string | undefined;
  if (method === 'DELETE' && tenant !== undefined) url.searchParams.set('tenant', tenant);
  return askServer(server, { method, url, body });
}

const rowOf = ({ id, tenant, rank, num_matrices, size_bytes, content_hash }: ServedAdapter): string[] => [
  id,
  tenant ?? '–',
  String(rank),
  String(num_matrices),
  formatBytes(size_bytes),
  content_hash.slice(0, 12),
];

const ACTIONS: Readonly<Record<string, AdapterAction>> = {
  list: {
    args: '',
    description: 'those that a server has loaded',
    flags: ['--url', '--api-key'],
    numWords: [0, 0],
    async run(context) {
      const { data } = (await ask(context, 'GET', '/admin/adapters', null)) as { data: readonly ServedAdapter[] };
      context.output.document({ adapters: data });
      if (data.length === 0) return context.output.note('no adapters are loaded');
      const head = ['MODEL:ADAPTER', 'TENANT', 'RANK', 'MATRICES', 'MEMORY', 'CONTENT'];
      context.output.table(head, data.map(rowOf));
    },
  },
  load: {
    args: '<name> <path>',
    description: 'make one known to a server; the path is of its machine, one of the same name is replaced',
    flags: SERVER_FLAGS,
    numWords: [2, 2],
    async run(context, [name, path]) {
      const { '--model': model, '--tenant': tenant } = context.values as Record<string, string | undefined>;
      const body = {
        name,
        path,
        ...(model === undefined ? {} : { model }),
        ...(tenant === undefined ? {} : { tenant }),
      };
      const loaded = (await ask(context, 'POST', '/admin/adapters', body)) as ServedAdapter;
      context.output.document(loaded);
      context.output.note(`${loaded.id} is loaded, with ${formatBytes(loaded.size_bytes)}`);
    },
  },
  unload: {
    args: '<name>',
    description: 'no request of a server gets it any more; answers in progress keep it',
    flags: SERVER_FLAGS,
    numWords: [1, 1],
    async run(context, [name]) {
      const model = context.values['--model'] as string | undefined;
      const id = model === undefined ? name! : `${model}:${name}`;
      context.output.document(await ask(context, 'DELETE', `/admin/adapters/${encodeURIComponent(id)}`, null));
      context.output.note(`${id} is unloaded`);
    },
  },
  merge: {
    args: '<out.gguf> <path> <path>...',
    description: 'make one of several, by what they compute; needs --model',
    flags: [...FILE_FLAGS, '--method', '--weight', '--rank', '--density', '--seed'],
    numWords: [2, 65],
    async run(context, [out, ...paths]) {
      const weights = (context.values['--weight'] as number[] | undefined) ?? [];
      if (weights.length > 0 && weights.length !== paths.length) {
        throw usageError(`${weights.length} weights for ${paths.length} files`, '--weight');
      }
      const base = await readBase(context);
      const inputs: { adapter: Adapter; weight: number }[] = [];
      for (const [i, path] of paths.entries()) {
        inputs.push({ adapter: await readAdapter(path, base), weight: weights[i] ?? 1 });
      }
      const { adapter, report } = await mergeAdapters(inputs, readMergeOptions(context));
      const worst = report.matrices.reduce((least, { keptEnergy }) => Math.min(least, keptEnergy), 1);
      saveAdapter(context, out!, adapter, { ...report, worstKeptEnergy: worst });
      context.output.note(`at least ${(100 * worst).toFixed(2)} % of every merged matrix fits into its rank`);
    },
  },
  export: {
    args: '<path> <out.gguf>',
    description: 'write one, such as what PEFT has saved, as a GGUF file that llama.cpp reads too; needs --model',
    flags: FILE_FLAGS,
    numWords: [2, 2],
    async run(context, [path, out]) {
      saveAdapter(context, out!, await readAdapter(path!, await readBase(context)), {});
    },
  },
  train: {
    args: '',
    description: 'make one from pairs of prompt and answer; needs --model, --data and --output',
    flags: [...FILE_FLAGS, '--rank', '--seed', ...TRAIN_FLAGS.map(({ name }) => name)],
    numWords: [0, 0],
    run: trainAdapter,
  },
};

export const ADAPTERS_HELP: HelpParts = {
  actions: Object.entries(ACTIONS).map(([name, { args, description }]) => ({ name, args, description })),
};

/** Lists, loads and unloads what a server has, and makes files of files. */
export const adapters: CommandRunner = async (context) => {
  const [name, ...words] = context.args as [string, ...string[]];
  if (!Object.hasOwn(ACTIONS, name)) throw unknownAction('adapters', name, ACTIONS);
  const action = ACTIONS[name]!;
  const unknown = Object.keys(context.values).find((flag) => flag !== '--json' && !action.flags.includes(flag));
  // It belongs to another action, and would be ignored here.
  if (unknown !== undefined) throw usageError(`adapters ${name} has no ${unknown}`, unknown);
  const [least, most] = action.numWords;
  if (words.length < least || words.length > most) {
    throw usageError(`adapters ${name} ${action.args}: ${words.length} arguments were given`);
  }
  await action.run(context, words);
};

/** Only the header of the model is read. */
async function readBase({ io, values }: CommandContext): Promise<AdapterBase> {
  const reference = values['--model'] as string | undefined;
  if (reference === undefined) throw usageError('--model must name the model that the files are for', '--model');
  const path = await openHub().resolveModelPath(reference, { download: false, signal: io.signal });
  const gguf = openModelFile(path);
  try {
    return readShape(gguf);
  } finally {
    gguf.source.close();
  }
}

function readMergeOptions({ values }: CommandContext): MergeOptions {
  const names = { '--method': 'method', '--rank': 'rank', '--density': 'density', '--seed': 'seed' } as const;
  const given = Object.entries(names).filter(([flag]) => Object.hasOwn(values, flag));
  return Object.fromEntries(given.map(([flag, option]) => [option, values[flag]])) as MergeOptions;
}
