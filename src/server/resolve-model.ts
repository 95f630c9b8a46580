import { RuvLLMError } from '../core/errors.ts';
import type { GenerationRequest } from '../runtime/requests/generation-request.ts';
import type { ModelStatus } from '../runtime/requests/model-host.ts';
import { refusal } from './errors.ts';
import type { SavedModel } from './model-library.ts';
import { resolveModelName } from './model-name.ts';
import type { Exchange } from './route.ts';
import { withSavedDefaults } from './saved-defaults.ts';
import type { Services } from './services.ts';

/** The served model behind a name. */
export interface ResolvedModel {
  readonly id: string;
  /** The defaults of a saved model; null: none. */
  readonly saved: SavedModel | null;
}

/** The tag `latest` means no tag. */
export const withoutLatest = (name: string): string => name.replace(/:latest$/, '');
/** Ollama's lists show every name with a tag; a URL has none. */
export const withTag = (name: string): string =>
  name.includes('://') || /:[^/:]+$/.test(name) ? name : `${name}:latest`;

/** A chain of saved models has an end. */
const MAX_CHAIN = 8;

/** A served model by its own name; `name:adapter` counts too, of all tenants or of this one. */
export function findServed({ models }: Services, name: string, tenant?: string): ModelStatus | null {
  const isNamed = ({ id, aliases }: ModelStatus, wanted: string): boolean => id === wanted || aliases.includes(wanted);
  const plain = withoutLatest(name);
  const status = models.list().find((one) => isNamed(one, name) || isNamed(one, plain));
  if (status !== undefined) return status;
  // Only a loaded model knows its adapters: any tag of an unloaded one would look like an adapter.
  const withAdapter = models.find(plain, tenant);
  return withAdapter?.model == null ? null : withAdapter;
}

interface SavedChain {
  /** The name at the end of the chain. */
  readonly target: string;
  /** The served model at the end; null: it is not served. */
  readonly id: string | null;
  readonly saved: SavedModel | null;
  /** The last saved model; located by its own name, because its base may be a path, which clients must not name. */
  readonly savedName: string | null;
}

/** Follows saved models to the one they build on, and merges their defaults. */
async function followSaved({ services, caller }: ResolvingExchange, name: string): Promise<SavedChain> {
  const { library, routing } = services;
  let target = withoutLatest(name);
  let saved: SavedModel | null = null;
  let savedName: string | null = null;
  for (let depth = 0; depth < MAX_CHAIN; depth++) {
    if (routing?.config.alias === target) return { target, id: target, saved, savedName };
    const status = findServed(services, target, caller.tenant);
    // A model served under the name of a saved one still has its defaults.
    const definition = (await library?.saved.find(target)) ?? null;
    if (definition !== null) saved = saved === null ? definition : mergeSaved(definition, saved);
    if (status !== null) return { target, id: servedName(status, target), saved, savedName };
    if (definition === null) break;
    savedName = target;
    target = withoutLatest(definition.from);
  }
  return { target, id: null, saved, savedName };
}

/**
 * The model of a name: served, saved, or downloaded. A downloaded one is added to the served models, as with
 * `/admin/models/load`, if the key may do that, with the context that the request or the saved model asks for.
 */
export async function resolveModel(
  exchange: ResolvingExchange,
  name: string,
  numContext: number | null = null,
): Promise<ResolvedModel> {
  return await finish(exchange, name, await followSaved(exchange, name), numContext);
}

/** The same for a saved model; null: the name is that of no saved model. */
export async function resolveSaved(exchange: ResolvingExchange, name: string): Promise<ResolvedModel | null> {
  if (exchange.services.library === null) return null;
  const chain = await followSaved(exchange, name);
  return chain.saved === null ? null : await finish(exchange, name, chain, null);
}

type ResolvingExchange = Pick<Exchange, 'services' | 'caller' | 'ignoreField'>;

async function finish(
  { services, caller, ignoreField }: ResolvingExchange,
  name: string,
  { target, id: servedId, saved, savedName }: SavedChain,
  numContext: number | null,
): Promise<ResolvedModel> {
  const savedContext = saved?.parameters['num_ctx'];
  const maxContext = numContext ?? (typeof savedContext === 'number' ? savedContext : null);
  const canAdd = caller.scopes.includes('admin');
  const id = servedId ?? (await addDownloaded(services, savedName ?? target, { name, canAdd, maxContext }));
  const status = services.models.find(id, caller.tenant);
  const context = status?.model?.modelInfo().maxContext ?? status?.maxContext ?? null;
  if (maxContext !== null && context !== maxContext) {
    if (numContext !== null) ignoreField('options.num_ctx');
    else if (!services.isStrict) ignoreField('parameters.num_ctx');
  }
  return { id, saved };
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
  { name, canAdd, maxContext }: { name: string; canAdd: boolean; maxContext: number | null },
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
  const trained = library.describe(path)?.contextLength ?? Infinity;
  const entry = await catalog.open(target, target, maxContext === null ? null : Math.min(maxContext, trained));
  return (models.find(target) ?? models.add(entry)).id;
}

export function notFound(name: string, suggestions: readonly string[]): Error {
  const hint = suggestions.length === 0 ? 'try pulling it first' : `did you mean ${suggestions.join(' or ')}?`;
  return refusal(404, 'model_not_found', `model ${JSON.stringify(name.slice(0, 200))} not found, ${hint}`, {
    param: 'model',
  });
}

/** The request with the served model that answers it, and with the defaults of a saved model. */
export async function withModel(
  generation: GenerationRequest,
  exchange: ResolvingExchange,
): Promise<GenerationRequest> {
  const { model: name } = generation;
  const resolved = name === '' ? null : await resolveSaved(exchange, name);
  if (resolved === null) return { ...generation, model: resolveModelName(name, exchange.services, exchange.caller) };
  return withSavedDefaults({ ...generation, model: resolved.id }, resolved.saved!);
}
