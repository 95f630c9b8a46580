import { RuvLLMError } from '../core/errors.ts';
import { isModelName, plainName } from './model-names.ts';
import type { HubPlatform } from './platform.ts';

/** A model that the user has defined: another one with defaults of its own. */
export interface SavedModel {
  /** The model it uses: a name, reference or path. */
  readonly from: string;
  readonly system: string | null;
  /** Defaults in Ollama's spelling: `temperature`, `num_ctx`, `stop`. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Path of a LoRA adapter; null: none. */
  readonly adapter: string | null;
  /** The first turns of each conversation. */
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}

/** Models that the user has defined, one small file each. */
export interface SavedModels {
  find(name: string): Promise<SavedModel | null>;
  list(): Promise<readonly (SavedModel & { readonly name: string })[]>;
  save(name: string, model: SavedModel): Promise<void>;
  /** False: not found. */
  remove(name: string): Promise<boolean>;
}

const MAX_BYTES = 2 ** 20;

/** Saved models in a folder of the model cache, which other tools ignore. */
export function openSavedModels({ files }: HubPlatform, cacheRoot: string): SavedModels {
  const folder = files.join(cacheRoot, '.ruvllm-models');
  const pathOf = (name: string): string =>
    files.join(folder, `${encodeURIComponent(plainName(name).toLowerCase()).replaceAll('%3A', '+')}.json`);

  async function read(path: string): Promise<SavedModel | null> {
    const text = await files.readText(path, MAX_BYTES).catch(() => null);
    if (text === null) return null;
    try {
      const model = JSON.parse(text) as SavedModel;
      return typeof model.from === 'string' ? model : null;
    } catch {
      return null; // damaged, or of another tool
    }
  }

  return {
    find: async (name) => (isModelName(name) ? await read(pathOf(name)) : null),
    async list() {
      const models: (SavedModel & { name: string })[] = [];
      for (const { name: file } of await files.list(folder)) {
        if (!file.endsWith('.json')) continue;
        const model = await read(files.join(folder, file));
        const name = decodeURIComponent(file.slice(0, -'.json'.length).replaceAll('+', ':'));
        if (model !== null && isModelName(name)) models.push({ ...model, name });
      }
      return models;
    },
    async save(name, model) {
      if (!isModelName(name)) {
        throw new RuvLLMError(
          'invalid_option',
          `${JSON.stringify(name.slice(0, 120))} is not a model name: use letters, digits, . _ - and an optional :tag`,
          { data: { option: 'model' } },
        );
      }
      await files.makeFolder(folder);
      await files.writeText(pathOf(name), `${JSON.stringify(model, null, 2)}\n`);
    },
    remove: (name) => (isModelName(name) ? files.remove(pathOf(name)) : Promise.resolve(false)),
  };
}
