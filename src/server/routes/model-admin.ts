import { RuvLLMError } from '../../core/errors.ts';
import { refusal } from '../errors.ts';
import { fitOf } from '../model-fit.ts';
import type { ModelCatalog } from '../model-catalog.ts';
import { displayNameOf } from '../model-name.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import { type Exchange, json, type Route } from '../route.ts';
import type { Services } from '../services.ts';
import {
  booleanField,
  integerField,
  type JsonSchema,
  readFields,
  requiredField,
  schemaOf,
  stringField,
} from '../wire/fields.ts';
import { queryBoolean, queryInteger, readQuery } from '../wire/query-fields.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

const MAX_WAIT_MS = 50_000;
const DEFAULT_DRAIN_MS = 10_000;
const MAX_DRAIN_MS = 50_000;

const LOAD = {
  model: requiredField(stringField(512, 1)),
  name: stringField(200, 1),
  wait_ms: integerField(0, MAX_WAIT_MS),
} as const;
const UNLOAD = {
  model: requiredField(stringField(512, 1)),
  force: booleanField,
  drain_ms: integerField(0, MAX_DRAIN_MS),
} as const;
const REMOVE = { force: queryBoolean, drain_ms: queryInteger(0, MAX_DRAIN_MS) };

/** Usable in a path and before `:ADAPTER`. */
const SERVED_NAME = /^[\w.@/:-]{1,200}$/;

const writeStatus = (status: ModelStatus, services: Pick<Services, 'library'>) => ({
  id: status.id,
  object: 'served_model',
  display_name: displayNameOf(status, services),
  aliases: status.aliases,
  state: status.state,
  num_users: status.numUsers,
  size_bytes: status.sizeBytes,
  held_bytes: status.heldBytes,
  is_added: status.isAdded,
  is_pinned: status.isPinned,
  group: status.group,
  /** Seconds since 1970 when the idle model is unloaded. */
  expires: status.expiresMs === null ? null : Math.floor(status.expiresMs / 1000),
  error: status.error,
});

const route = (
  method: Route['method'],
  path: string,
  scope: Route['scope'],
  summary: string,
  handle: Route['handle'],
  body: JsonSchema | null = null,
): Route => ({ method, path, scope, summary, body, errors: openaiErrors, handle });

export function requireCatalog({ catalog }: Pick<Services, 'catalog'>): ModelCatalog {
  if (catalog !== null) return catalog;
  throw refusal(501, 'not_implemented', 'models cannot be added to this server');
}

/** Adding, loading and removing models while the server runs. */
export const modelAdminRoutes: readonly Route[] = [
  {
    ...route(
      'GET',
      '/admin/models',
      'operate',
      'Served models, downloaded files, and which of them fit into memory.',
      list,
    ),
    query: {},
  },
  route(
    'POST',
    '/admin/models/load',
    'admin',
    'Loads a served model, or adds one whose file is downloaded; 202 while it is loading.',
    load,
    schemaOf(LOAD),
  ),
  route(
    'POST',
    '/admin/models/unload',
    'admin',
    'Unloads a model; one in use only with `force`, after `drain_ms`. The next request loads it again.',
    unload,
    schemaOf(UNLOAD),
  ),
  {
    ...route('DELETE', '/admin/models/:id{.+}', 'admin', 'Unloads and removes an added model.', remove),
    query: REMOVE,
  },
];

async function list({ request, services }: Exchange): Promise<Response> {
  readQuery(request, {});
  const { models, catalog } = services;
  const statuses = models.list();
  const { budgetBytes, usedBytes } = models.memory;
  const freeBytes = catalog?.freeBytes() ?? null;
  const cached = (await catalog?.list()) ?? null;
  return json({
    object: 'list',
    budget_bytes: budgetBytes,
    used_bytes: usedBytes,
    free_bytes: freeBytes,
    data: statuses.map((status) => writeStatus(status, services)),
    cached:
      cached?.map(({ reference, sizeBytes, modifiedMs }) => ({
        reference,
        size_bytes: sizeBytes,
        modified: Math.floor(modifiedMs / 1000),
        served_as: models.find(reference)?.id ?? null,
        fits: fitOf(sizeBytes, statuses, { budgetBytes, freeBytes }),
      })) ?? null,
  });
}

async function load(exchange: Exchange): Promise<Response> {
  const { services, caller, readBody } = exchange;
  const fields = readFields(await readBody(), LOAD);
  const { model } = fields;
  const { models } = services;
  const id = models.find(fields.name ?? model)?.id ?? (await addFromCatalog(services, model, fields.name));
  try {
    const lease = await models.acquire(id, { signal: caller.signal, waitMs: fields.wait_ms ?? 0 });
    lease.release();
  } catch (error) {
    // The load continues.
    const isLoading = error instanceof RuvLLMError && error.code === 'overloaded' && 'waitMs' in error.data;
    if (!isLoading) throw error;
    return json(writeStatus(models.find(id)!, services), 202);
  }
  return json(writeStatus(models.find(id)!, services));
}

async function addFromCatalog(services: Services, reference: string, name: string | null): Promise<string> {
  const { models, routing } = services;
  const entry = await requireCatalog(services).open(reference, name);
  if (!SERVED_NAME.test(entry.id) || entry.id === routing?.config.alias) {
    throw refusal(400, 'invalid_value', `${JSON.stringify(entry.id.slice(0, 200))} is not a valid model name`, {
      param: 'name',
    });
  }
  return models.add(entry).id;
}

async function unload({ services, readBody }: Exchange): Promise<Response> {
  const { model, force, drain_ms: drainMs } = readFields(await readBody(), UNLOAD);
  const options = { force: force ?? false, drainMs: drainMs ?? DEFAULT_DRAIN_MS };
  return json(writeStatus(await services.models.unload(model, options), services));
}

async function remove({ request, params, services }: Exchange): Promise<Response> {
  const { force, drain_ms: drainMs } = readQuery(request, REMOVE);
  const id = params['id']!;
  await services.models.remove(id, { force: force ?? false, drainMs: drainMs ?? DEFAULT_DRAIN_MS });
  return json({ id, object: 'served_model.deleted', deleted: true });
}
