import {
  type Adapter,
  type AdapterBase,
  MERGE_METHODS,
  mergeAdapters,
  type MergeOptions,
} from '../../adapters/index.ts';
import { readShape } from '../../models/shape.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { readAdapter } from '../../node/read-adapter.ts';
import { actionCommand } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { API_KEY_FLAG, URL_FLAG } from '../config/common-flags.ts';
import { collectOptions, defineFlags, type Flag } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { askServer, readServer } from '../servers/ask-server.ts';
import { openHub } from '../open-hub.ts';
import { saveAdapter, TYPE_DESCRIPTION } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';

const SERVER_FLAGS: readonly Flag[] = [
  { ...URL_FLAG, description: `${URL_FLAG.description}; default http://127.0.0.1:8080` },
  API_KEY_FLAG,
];
const MODEL_ROW = { '--model <model>': 'base model: a name on the server, or a file or reference' };
const LOAD_ADAPTER_FLAGS = [
  ...SERVER_FLAGS,
  ...defineFlags({ ...MODEL_ROW, '--tenant <name> tenant': 'load or unload: only for requests of this tenant' }),
];
const MERGE_FLAGS = defineFlags({
  [`--method <${Object.keys(MERGE_METHODS).join('|')}> method`]: 'merge: method; default linear',
  '--weight <x>...': 'merge: weight of each file, in order (repeatable); default 1',
  '--rank <n> rank': 'merge: rank of the result; default: the highest rank of the files',
  '--density <x> density': 'merge by ties or dare: kept fraction; default 0.5',
  '--seed <n> seed': 'merge by dare: seed of dropped values; default 0',
});
const FILE_FLAGS = defineFlags({
  ...MODEL_ROW,
  '--type <F32|F16>': `merge or export: ${TYPE_DESCRIPTION}`,
  '--name <name>': 'merge or export: name stored in the file',
});

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

/** Lists, loads and unloads adapters of a server; merges and exports adapter files. */
export const { flags, help, run } = actionCommand('adapters', {
  list: {
    args: '',
    description: 'list the adapters loaded on a server',
    flags: SERVER_FLAGS,
    async run(context) {
      const { data } = (await ask(context, 'GET', '/admin/adapters', null)) as { data: readonly ServedAdapter[] };
      context.output.document({ adapters: data });
      if (data.length === 0) return context.output.note('no adapters loaded');
      const head = ['MODEL:ADAPTER', 'TENANT', 'RANK', 'MATRICES', 'MEMORY', 'HASH'];
      context.output.table(head, data.map(rowOf));
    },
  },
  load: {
    args: '<name> <path>',
    description:
      'load an adapter on a server from its folders of adapters (--adapter-folder), replacing one of the same name',
    flags: LOAD_ADAPTER_FLAGS,
    async run(context, [name, path]) {
      const { '--model': model, '--tenant': tenant } = context.values;
      const body = { name, path, model, tenant };
      const adapter = (await ask(context, 'POST', '/admin/adapters', body)) as ServedAdapter;
      context.output.document(adapter);
      context.output.note(`loaded ${adapter.id} (${formatBytes(adapter.size_bytes)})`);
    },
  },
  unload: {
    args: '<name>',
    description: 'unload an adapter from a server; requests in progress keep it',
    flags: LOAD_ADAPTER_FLAGS,
    async run(context, [name]) {
      const model = context.values['--model'] as string | undefined;
      const id = model === undefined ? name! : `${model}:${name}`;
      context.output.document(await ask(context, 'DELETE', `/admin/adapters/${encodeURIComponent(id)}`, null));
      context.output.note(`unloaded ${id}`);
    },
  },
  merge: {
    args: '<out.gguf> <path>...',
    description: 'merge several adapters into one file; requires --model',
    flags: [...FILE_FLAGS, ...MERGE_FLAGS],
    async run(context, [out, ...paths]) {
      const weights = (context.values['--weight'] as number[] | undefined) ?? [];
      if (weights.length > 0 && weights.length !== paths.length) {
        throw usageError(`got ${weights.length} weights for ${paths.length} files; give one per file`, '--weight');
      }
      const base = await readBase(context);
      const inputs: { adapter: Adapter; weight: number }[] = [];
      for (const [i, path] of paths.entries()) {
        inputs.push({ adapter: await readAdapter(path, base), weight: weights[i] ?? 1 });
      }
      const { adapter, report } = await mergeAdapters(
        inputs,
        collectOptions(MERGE_FLAGS, context.values) as MergeOptions,
      );
      const worstKeptEnergy = report.matrices.reduce((least, { keptEnergy }) => Math.min(least, keptEnergy), 1);
      saveAdapter(context, out!, adapter, { ...report, worstKeptEnergy });
      context.output.note(`every merged matrix keeps at least ${(100 * worstKeptEnergy).toFixed(2)} % of its energy`);
    },
  },
  export: {
    args: '<path> <out.gguf>',
    description:
      'convert an adapter, such as a PEFT folder, to a GGUF file, which llama.cpp reads, too; requires --model',
    flags: FILE_FLAGS,
    async run(context, [path, out]) {
      saveAdapter(context, out!, await readAdapter(path!, await readBase(context)), {});
    },
  },
});

/** Reads only the header of the model. */
async function readBase({ io, values }: CommandContext): Promise<AdapterBase> {
  const reference = values['--model'] as string | undefined;
  if (reference === undefined) throw usageError('--model is required: the base model of the files', '--model');
  const path = await openHub().resolveModelPath(reference, { download: false, signal: io.signal });
  const gguf = openModelFile(path);
  try {
    return readShape(gguf);
  } finally {
    gguf.source.close();
  }
}
