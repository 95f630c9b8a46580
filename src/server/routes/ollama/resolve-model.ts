import { RuvLLMError } from '../../../core/errors.ts';
import type { ModelStatus } from '../../../runtime/requests/model-host.ts';
import { refusal } from '../../errors.ts';
import type { SavedModel } from '../../model-library.ts';
import type { Exchange } from '../../route.ts';
import type { Services } from '../../services.ts';

/** The served model behind a name. */
export interface ResolvedModel {
  readonly id: string;
  /** The defaults of a saved model; null: none. */
  readonly saved: SavedModel | null;
}

/** The tag `latest` means no tag. */
export const withoutLatest = (name: string): string => name.replace(/:latest$/, '');
/** Ollama's lists show every name with a tag; a URL has none. */
export const withTag = (name: string): string => (/:[^/]+$|:\/\//.test(name) ? name : `${name}:latest`);

/** A chain of saved models has an end. */
const MAX_CHAIN = 8;

/** A served model by its own name; `name:adapter` counts too. */
export function findServed({ models }: Services, name: string): ModelStatus | null {
  const isNamed = ({ id, aliases }: ModelStatus, wanted: string): boolean => id === wanted || aliases.includes(wanted);
  const plain = withoutLatest(name);
  const status = models.list().find((one) => isNamed(one, name) || isNamed(one, plain));
  if (status !== undefined) return status;
  // Only a loaded model knows its adapters: any tag of an unloaded one would look like an adapter.
  const withAdapter = models.find(plain);
  return withAdapter?.model == null ? null : withAdapter;
}

/**
 * The model of a name: served, saved, or downloaded. A downloaded one is added to the served models, as with
 * `/admin/models/load`, if the key may do that.
 */
export async function resolveModel(
  exchange: Pick<Exchange, 'services' | 'caller'>,
  name: string,
): Promise<ResolvedModel> {
  const { services, caller } = exchange;
  const { library, routing } = services;
  let target = withoutLatest(name);
  let saved: SavedModel | null = null;
  /** Located by its own name, because its base may be a path, which clients must not name. */
  let savedName: string | null = null;
  for (let depth = 0; depth < MAX_CHAIN; depth++) {
    if (routing?.config.alias === target) return { id: target, saved };
    const status = findServed(services, target);
    // A model served under the name of a saved one still has its defaults.
    const definition = (await library?.saved.find(target)) ?? null;
    if (definition !== null) saved = saved === null ? definition : mergeSaved(definition, saved);
    if (status !== null) return { id: servedName(status, target), saved };
    if (definition === null) break;
    savedName = target;
    target = withoutLatest(definition.from);
  }
  const canAdd = caller.scopes.includes('admin');
  return { id: await addDownloaded(services, savedName ?? target, { name, canAdd }), saved };
}

/** Keeps the adapter of `name:adapter`. */
const servedName = (status: ModelStatus, name: string): string =>
  status.id === name || status.aliases.includes(name) || !name.includes(':') ? status.id : name;

function mergeSaved(base: SavedModel, top: SavedModel): SavedModel {
  return {
    ...top,
    system: top.system ?? base.system,
    parameters: { ...base.parameters, ...top.parameters },
    adapter: top.adapter ?? base.adapter,
    messages: top.messages.length > 0 ? top.messages : base.messages,
  };
}

async function addDownloaded(
  services: Services,
  target: string,
  { name, canAdd }: { name: string; canAdd: boolean },
): Promise<string> {
  const { library, catalog, models } = services;
  if (library === null || catalog === null) throw notFound(name, []);
  let path: string;
  try {
    ({ path } = await library.locate(target));
  } catch (error) {
    if (!(error instanceof RuvLLMError) || !['not_found', 'invalid_option'].includes(error.code)) throw error;
    const suggestions = error.data['suggestions'];
    throw notFound(name, Array.isArray(suggestions) ? suggestions.map(String) : []);
  }
  const samePath = models.list().find((status) => status.path === path);
  if (samePath !== undefined) return samePath.id;
  if (!canAdd) {
    const message = `model ${JSON.stringify(name)} is downloaded but not served; an admin key can load it`;
    throw refusal(403, 'insufficient_scope', message, { type: 'permission_error' });
  }
  const entry = await catalog.open(target, target);
  return (models.find(target) ?? models.add(entry)).id;
}

export function notFound(name: string, suggestions: readonly string[]): Error {
  const hint = suggestions.length === 0 ? 'try pulling it first' : `did you mean ${suggestions.join(' or ')}?`;
  return refusal(404, 'model_not_found', `model ${JSON.stringify(name.slice(0, 200))} not found, ${hint}`, {
    param: 'model',
  });
}
