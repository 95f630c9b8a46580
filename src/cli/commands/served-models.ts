import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { loadModel } from '../../platform/node/load-model.ts';
import type { Model } from '../../runtime/model.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelEntry } from '../../runtime/requests/model-host.ts';
import { chooseModel, describeChoice } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { fetchModel } from '../fetch-model.ts';
import { usageError } from '../usage-error.ts';

/** `NAME=MODEL`; a `=` inside a path is left alone. */
const NAMED = /^([\w.:-]{1,200})=(.+)$/;

/** The models of a server: those that were named, else the default one. Files are fetched now and loaded when needed. */
export async function resolveServedModels(
  context: CommandContext,
  config: ModelConfig,
  /** What is only known after this, of a model by its name. */
  more: (id: string) => ModelConfig = () => ({}),
): Promise<{ readonly entries: readonly ModelEntry[]; readonly firstPath: string }> {
  const wanted = context.args.map(splitName);
  const found =
    wanted.length === 0 ? [await findDefault(context)] : await Promise.all(wanted.map((one) => findFile(context, one)));
  const adapters = readAdapters(context);
  const aliases = readAliases(context, new Set(found.map(({ id }) => id)));
  return {
    firstPath: found[0]!.path,
    entries: found.map(({ id, path }, index) => {
      const entry = describeModelFile(id, path, () => ({ ...config, ...more(id) }));
      return {
        ...entry,
        aliases: [...(aliases.get(id) ?? []), ...(index === 0 && id !== 'default' ? ['default'] : [])],
        load: async (signal) => {
          const model = await entry.load(signal);
          return index === 0 ? addAdapters(model, adapters) : model;
        },
      };
    }),
  };
}

/** A model by its file, without aliases. */
export function describeModelFile(id: string, path: string, config: () => ModelConfig): ModelEntry {
  const { size, mtimeMs } = statSync(path);
  return {
    id,
    aliases: [],
    created: Math.floor(mtimeMs / 1000),
    sizeBytes: size,
    load: (signal) => loadModel(path, { ...config(), signal }),
  };
}

/** An adapter of a model of the command line. */
interface NamedAdapter {
  readonly name: string;
  readonly path: string;
}

export function readAdapters({ values }: CommandContext): readonly NamedAdapter[] {
  return ((values['--adapter'] as string[] | undefined) ?? []).map((text) => {
    const [, name, path] = NAMED.exec(text) ?? [];
    if (name !== undefined && !name.includes(':')) return { name, path: path! };
    throw usageError(`--adapter must be NAME=PATH, got ${JSON.stringify(text)}`, '--adapter');
  });
}

async function addAdapters(model: Model, adapters: readonly NamedAdapter[]): Promise<Model> {
  try {
    for (const { name, path } of adapters) await model.loadAdapter(path, { name });
    return model;
  } catch (error) {
    await model.dispose();
    throw error;
  }
}

interface FoundModel {
  readonly id: string;
  readonly path: string;
}

async function findDefault(context: CommandContext): Promise<FoundModel> {
  const chosen = await chooseModel(context, undefined);
  context.output.note(describeChoice(chosen));
  return { id: nameOf(chosen.reference), path: chosen.source };
}

async function findFile(
  context: CommandContext,
  { name, reference }: { name: string | null; reference: string },
): Promise<FoundModel> {
  return { id: name ?? nameOf(reference), path: await fetchModel(context, reference) };
}

/** `NAME=MODEL` in its parts; a model may go without a name. */
export function splitName(text: string): { readonly name: string | null; readonly reference: string } {
  const [, name, reference] = NAMED.exec(text) ?? [];
  return { name: name ?? null, reference: reference ?? text };
}

/** Where a file lies is not for clients to see: its name is enough. */
export function nameOf(reference: string): string {
  return /\.gguf$/i.test(reference) ? basename(reference).replace(/\.gguf$/i, '') : reference;
}

function readAliases({ values }: CommandContext, ids: ReadonlySet<string>): Map<string, string[]> {
  const aliases = new Map<string, string[]>();
  for (const text of (values['--alias'] as string[] | undefined) ?? []) {
    const [, alias, id] = NAMED.exec(text) ?? [];
    if (alias === undefined || !ids.has(id!)) {
      const known = [...ids].join(', ');
      throw usageError(`--alias must be NAME=MODEL with one of ${known}, got ${JSON.stringify(text)}`, '--alias');
    }
    aliases.set(id!, [...(aliases.get(id!) ?? []), alias]);
  }
  return aliases;
}
