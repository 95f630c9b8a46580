import { statSync } from 'node:fs';
import { basename } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../../runtime/model.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import type { ModelEntry } from '../../runtime/requests/model-host.ts';
import { chooseModel, describeChoice } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { shortNameOf } from '../../hub/model-names.ts';
import type { ModelPreset } from '../config/model-presets.ts';
import { fetchModel } from '../load-model.ts';
import { readSavedDefaults } from '../saved-model.ts';
import { usageError } from '../usage-error.ts';

/** `NAME=MODEL`; a path that contains `=` is not a name. */
const NAMED = /^([\w.:-]{1,200})=(.+)$/;

/** The named models and those of the settings file, else the default one; downloaded now, loaded on demand. Maybe none. */
export async function resolveServedModels(
  context: CommandContext,
  config: ModelConfig,
  /** Additional config of a model, read when it is loaded. */
  lateConfig: (id: string) => ModelConfig = () => ({}),
): Promise<{ readonly entries: readonly ModelEntry[]; readonly firstPath: string | null }> {
  const wishes = readWishes(context);
  const models =
    wishes.length === 0 ? await findDefault(context) : await Promise.all(wishes.map((wish) => findFile(context, wish)));
  const adapters = readAdapters(context);
  const aliases = readAliases(context, new Set(models.map(({ id }) => id)));
  const hasDefault = models.some(({ id, preset }) => id === 'default' || preset?.aliases.includes('default') === true);
  const hasContextFlag = context.values['--context'] !== undefined;
  return {
    firstPath: models[0]?.path ?? null,
    entries: await Promise.all(
      models.map(async ({ id, path, reference, preset, saved }, index) => {
        const maxContext =
          (hasContextFlag ? null : preset?.maxContext) ?? config.maxContext ?? saved.maxContext ?? null;
        const sampling = preset?.sampling ?? {};
        const entry = await describeModelFile(id, path, {
          maxContext,
          plan: config,
          config: () => ({ ...config, sampling, ...lateConfig(id) }),
        });
        return {
          ...entry,
          sampling,
          isPinned: preset?.isPinned ?? false,
          idleUnloadMs: preset?.idleUnloadMs ?? null,
          group: preset?.group ?? null,
          aliases: [
            ...(reference === null ? [] : [reference]),
            ...(preset?.aliases ?? []),
            ...(aliases.get(id) ?? []),
            ...(index === 0 && !hasDefault ? ['default'] : []),
          ],
          load: async (signal) =>
            addAdapters(await entry.load(signal), [...(preset?.adapters ?? []), ...(index === 0 ? adapters : [])]),
        };
      }),
    ),
  };
}

/** A model to serve: of the command line, of the settings file, or both. */
interface ModelWish {
  /** Null: after the reference. */
  readonly name: string | null;
  readonly reference: string;
  readonly preset: ModelPreset | null;
}

/** Models of the command line first, because the first one is the default; its file replaces that of the settings. */
function readWishes({ args, io, config: { presets } }: CommandContext): readonly ModelWish[] {
  const defaultModel = io.environment['RUVLLM_MODEL'] || null;
  const texts = args.length > 0 || presets.models.length === 0 || defaultModel === null ? args : [defaultModel];
  const named = texts.map((text): ModelWish => {
    const { name, reference } = splitName(text);
    const preset = presets.models.find((one) => one.name === (name ?? reference)) ?? null;
    if (preset === null) return { name, reference, preset };
    return { name: preset.name, reference: name === null ? preset.model : reference, preset };
  });
  const others = presets.models.filter((preset) => named.every((wish) => wish.preset !== preset));
  return [...named, ...others.map((preset) => ({ name: preset.name, reference: preset.model, preset }))];
}

/** The entry of a model file, without aliases. `plan` decides its memory; `config` is read when it is loaded. */
export async function describeModelFile(
  id: string,
  path: string,
  {
    maxContext,
    plan,
    config,
  }: { readonly maxContext: number | null; readonly plan: ModelConfig; readonly config: () => ModelConfig },
): Promise<ModelEntry> {
  const { size, mtimeMs } = statSync(path);
  const { estimateMemory } = await import('../../node/engine/estimate-memory.ts');
  const context = maxContext === null ? {} : { maxContext };
  return {
    id,
    aliases: [],
    created: Math.floor(mtimeMs / 1000),
    sizeBytes: estimateMemory(path, { ...plan, ...context })?.totalBytes ?? null,
    fileBytes: size,
    path,
    maxContext,
    async load(signal) {
      const { loadModel } = await import('../../node/load-model.ts');
      return loadModel(path, { ...config(), ...context, signal });
    },
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
  /** Its settings in the file; null: none. */
  readonly preset: ModelPreset | null;
  /** Config of a model saved with `ruvllm create`. */
  readonly saved: ModelConfig;
}

/** Empty: none can be had, or none is wanted; the dashboard then offers models. */
async function findDefault(context: CommandContext): Promise<readonly LocalModel[]> {
  const { io, output, values } = context;
  // The parser sets `--no-` flags to false.
  if (values['--no-model'] === false) return [];
  const chosen = await chooseModel(context, undefined).catch((error: unknown) => {
    const isConfigured = (io.environment['RUVLLM_MODEL'] ?? '') !== '';
    if (isConfigured || !(error instanceof RuvLLMError && error.code === 'not_found')) throw error;
    output.note(error.message);
    return null;
  });
  if (chosen === null) return [];
  output.note(describeChoice(chosen));
  const { config: saved } = await readSavedDefaults(chosen.reference, null);
  return [{ ...namesOf(chosen.reference), path: chosen.source, preset: null, saved }];
}

async function findFile(context: CommandContext, { name, reference, preset }: ModelWish): Promise<LocalModel> {
  const names = name === null ? namesOf(reference) : { id: name, reference: null };
  const { config: saved } = await readSavedDefaults(reference, null);
  return { ...names, path: await fetchModel(context, reference), preset, saved };
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
