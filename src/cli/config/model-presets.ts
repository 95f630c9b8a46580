import { dirname, resolve } from 'node:path';
import {
  BOOLEAN,
  integerKind,
  type JsonSchema,
  type Kind,
  listKind,
  mapKind,
  numberKind,
  OBJECT,
  textKind,
} from '../../core/kinds.ts';
import {
  type Fields,
  objectSchema,
  readFields,
  readNamedRecords,
  type RejectSetting,
} from '../../core/named-records.ts';
import { didYouMean } from '../../core/nearest.ts';
import { SAMPLING_KINDS } from '../../runtime/default-sampling.ts';
import type { SamplingDefaults } from '../../sampling/generate-params.ts';
import { MAX_SECONDS } from '../values.ts';

/** A model of the settings file, for `serve`. */
export interface ModelPreset {
  readonly name: string;
  /** Path, name or reference. */
  readonly model: string;
  readonly aliases: readonly string[];
  /** Null: as for other models. */
  readonly maxContext: number | null;
  readonly adapters: readonly { readonly name: string; readonly path: string }[];
  readonly sampling: Partial<SamplingDefaults>;
  /** Null: it stays loaded until its memory is needed. */
  readonly idleUnloadMs: number | null;
  readonly isPinned: boolean;
  readonly group: string | null;
}

/** The sections `models` and `modelGroups`. */
export interface ModelPresets {
  readonly models: readonly ModelPreset[];
  /** Most loaded models of each group. */
  readonly groups: ReadonlyMap<string, number>;
}

const NAME = '^[A-Za-z0-9_.:-]{1,200}$';
const PLAIN_NAME = '^[A-Za-z0-9_.-]{1,64}$';
const NAME_KIND = textKind('a name of letters, digits, . _ - and :', NAME);
const TEXT = textKind('a non-empty string', '^[^\\u0000]+$');

/** The fields of a model. */
const MODEL_FIELDS = {
  model: { description: 'the model: a path, a name or owner/repo[:QUANT]', kind: TEXT },
  aliases: { description: 'additional names', kind: listKind(NAME_KIND) },
  context: { description: 'context length; default: that of the section load', kind: integerKind(1, 2 ** 24) },
  adapters: {
    description: 'LoRA adapters by name, requested as MODEL:NAME: GGUF files or PEFT folders',
    kind: mapKind('an object of paths by name', PLAIN_NAME, TEXT),
  },
  sampling: { description: 'sampling of requests that set none of it', kind: OBJECT },
  idleUnload: {
    description: 'seconds without requests after which the model is unloaded; default: never',
    kind: numberKind(0.001, MAX_SECONDS),
  },
  pinned: { description: 'true: never unloaded for other models or when idle', kind: BOOLEAN },
  group: { description: 'a group of modelGroups, which limits how many of its models are loaded', kind: NAME_KIND },
} as const satisfies Fields;

const GROUP_FIELDS = {
  maxLoaded: { description: 'maximum number of loaded models of the group', kind: integerKind(1, 1000) },
} as const satisfies Fields;

/** The sections that are not derived from flags, with their descriptions. */
export const PRESET_SECTIONS: Readonly<Record<string, string>> = {
  models: 'Models that serve offers, by name; see docs/model-settings.md.',
  modelGroups: 'Groups of models with a limit, by name.',
};

/** Reads both sections; `file` is the path of the settings file. */
export function readPresets(
  { models = {}, modelGroups = {} }: { readonly models?: unknown; readonly modelGroups?: unknown },
  { file, reject }: { readonly file: string; readonly reject: RejectSetting },
): ModelPresets {
  const groups = readNamedRecords(modelGroups, 'modelGroups', NAME_KIND, GROUP_FIELDS, reject).map(
    ({ name, fields }) => [name, required(fields.maxLoaded, `modelGroups.${name}`, 'maxLoaded', reject)] as const,
  );
  const groupNames = groups.map(([name]) => name);
  return {
    groups: new Map(groups),
    models: readNamedRecords(models, 'models', NAME_KIND, MODEL_FIELDS, reject).map(({ name, fields }) => {
      const path = `models.${name}`;
      const { group = null } = fields;
      if (group !== null && !groupNames.includes(group)) {
        reject(`${path}.group`, `unknown group ${JSON.stringify(group)}${didYouMean(group, groupNames)}`);
      }
      return {
        name,
        model: resolveModel(required(fields.model, path, 'model', reject), file),
        aliases: fields.aliases ?? [],
        maxContext: fields.context ?? null,
        adapters: Object.entries(fields.adapters ?? {}).map(([adapter, adapterPath]) => ({
          name: adapter,
          path: resolve(dirname(file), adapterPath),
        })),
        sampling: readFields(fields.sampling ?? {}, `${path}.sampling`, SAMPLING_FIELDS, reject),
        idleUnloadMs: fields.idleUnload === undefined ? null : fields.idleUnload * 1000,
        isPinned: fields.pinned ?? false,
        group,
      };
    }),
  };
}

const SAMPLING_FIELDS = Object.fromEntries(
  Object.entries(SAMPLING_KINDS).map(([key, kind]) => [key, { description: '', kind }]),
) as { readonly [K in keyof SamplingDefaults]: { readonly description: string; readonly kind: Kind<number> } };

function required<T>(value: T | undefined, path: string, key: string, reject: RejectSetting): T {
  return value ?? reject(path, `"${path}" requires "${key}"`);
}

/** Only a leading dot tells a path from a name. */
export const resolveModel = (model: string, file: string): string =>
  /^\.\.?[\\/]/.test(model) ? resolve(dirname(file), model) : model;

/** Schemas of both sections. */
export function presetSchemas(): Readonly<Record<string, JsonSchema>> {
  const sampling = { ...MODEL_FIELDS.sampling, kind: { ...OBJECT, schema: objectSchema(SAMPLING_FIELDS, []) } };
  const section = (name: string, fields: Fields, requiredKey: string): JsonSchema => ({
    description: PRESET_SECTIONS[name],
    type: 'object',
    propertyNames: { pattern: NAME },
    additionalProperties: objectSchema(fields, [requiredKey]),
  });
  return {
    models: section('models', { ...MODEL_FIELDS, sampling }, 'model'),
    modelGroups: section('modelGroups', GROUP_FIELDS, 'maxLoaded'),
  };
}
