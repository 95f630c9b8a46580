import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { loadModel } from '../../node/load-model.ts';
import type { Model } from '../../runtime/model.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelEntry } from '../../runtime/requests/model-host.ts';
import { chooseModel, describeChoice } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { shortNameOf } from '../../hub/model-names.ts';
import { fetchModel } from '../load-model.ts';
import { usageError } from '../usage-error.ts';

/** `NAME=MODEL`; a path that contains `=` is not a name. */
const NAMED = /^([\w.:-]{1,200})=(.+)$/;

/** The named models, else the default one; downloaded now, loaded on demand. */
export async function resolveServedModels(
  context: CommandContext,
  config: ModelConfig,
  /** Additional config of a model, read when it is loaded. */
  lateConfig: (id: string) => ModelConfig = () => ({}),
): Promise<{ readonly entries: readonly ModelEntry[]; readonly firstPath: string }> {
  const names = context.args.map(splitName);
  const models =
    names.length === 0 ? [await findDefault(context)] : await Promise.all(names.map((name) => findFile(context, name)));
  const adapters = readAdapters(context);
  const aliases = readAliases(context, new Set(models.map(({ id }) => id)));
  return {
    firstPath: models[0]!.path,
    entries: models.map(({ id, path, reference }, index) => {
      const entry = describeModelFile(id, path, () => ({ ...config, ...lateConfig(id) }));
      return {
        ...entry,
        aliases: [
          ...(reference === null ? [] : [reference]),
          ...(aliases.get(id) ?? []),
          ...(index === 0 && id !== 'default' ? ['default'] : []),
        ],
        load: async (signal) => {
          const model = await entry.load(signal);
          return index === 0 ? addAdapters(model, adapters) : model;
        },
      };
    }),
  };
}

/** The entry of a model file, without aliases. */
export function describeModelFile(id: string, path: string, config: () => ModelConfig): ModelEntry {
  const { size, mtimeMs } = statSync(path);
  return {
    id,
    aliases: [],
    created: Math.floor(mtimeMs / 1000),
    sizeBytes: size,
    path,
    load: (signal) => loadModel(path, { ...config(), signal }),
  };
}

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

interface LocalModel {
  readonly id: string;
  /** The reference, if the id is a short name for it; null otherwise. */
  readonly reference: string | null;
  readonly path: string;
}

async function findDefault(context: CommandContext): Promise<LocalModel> {
  const chosen = await chooseModel(context, undefined);
  context.output.note(describeChoice(chosen));
  return { ...namesOf(chosen.reference), path: chosen.source };
}

async function findFile(
  context: CommandContext,
  { name, reference }: { name: string | null; reference: string },
): Promise<LocalModel> {
  const names = name === null ? namesOf(reference) : { id: name, reference: null };
  return { ...names, path: await fetchModel(context, reference) };
}

/** A short name where the table has one; requests may use the reference as well. */
function namesOf(reference: string): Pick<LocalModel, 'id' | 'reference'> {
  const short = shortNameOf(reference);
  return short === null ? { id: nameOf(reference), reference: null } : { id: short, reference };
}

/** Splits `NAME=MODEL`; the name is optional. */
export function splitName(text: string): { readonly name: string | null; readonly reference: string } {
  const [, name, reference] = NAMED.exec(text) ?? [];
  return { name: name ?? null, reference: reference ?? text };
}

/** The name that clients see: for a file, without its folder. */
export function nameOf(reference: string): string {
  return /\.gguf$/i.test(reference) ? basename(reference).replace(/\.gguf$/i, '') : reference;
}

function readAliases({ values }: CommandContext, ids: ReadonlySet<string>): Map<string, string[]> {
  const aliases = new Map<string, string[]>();
  for (const text of (values['--alias'] as string[] | undefined) ?? []) {
    const [, alias, id] = NAMED.exec(text) ?? [];
    if (alias === undefined || !ids.has(id!)) {
      const names = [...ids].join(', ');
      throw usageError(`--alias must be NAME=MODEL with MODEL one of ${names}, got ${JSON.stringify(text)}`, '--alias');
    }
    aliases.set(id!, [...(aliases.get(id!) ?? []), alias]);
  }
  return aliases;
}
