import { RuvLLMError } from '../../core/errors.ts';
import { refusal } from '../errors.ts';
import { fitOf } from '../model-fit.ts';
import type { ModelCatalog } from '../model-catalog.ts';
import { displayNameOf } from '../model-name.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import { measureBriefly, median } from '../../runtime/measure-speed.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import { booleanField, integerField, readFields, requiredField, schemaOf, stringField } from '../wire/fields.ts';
import { queryBoolean, queryInteger, readQuery } from '../wire/query-fields.ts';

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
const BENCHMARK = { model: requiredField(stringField(512, 1)) } as const;
const REMOVE = { force: queryBoolean, drain_ms: queryInteger(0, MAX_DRAIN_MS) };

/** Usable in a path and before `:ADAPTER`. */
const SERVED_NAME = /^[\w.@/:-]{1,200}$/;

const writeStatus = (status: ModelStatus, services: Pick<Services, 'library' | 'nodeName'>) => ({
  id: status.id,
  object: 'served_model',
  node: services.nodeName,
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

export function requireCatalog({ catalog }: Pick<Services, 'catalog'>): ModelCatalog {
  if (catalog !== null) return catalog;
  throw refusal(501, 'not_implemented', 'models cannot be added to this server');
}

/** Adding, loading and removing models while the server runs. */
export const routes = {
  'GET /admin/models': {
    summary: 'Served models, downloaded files, and which of them fit into memory.',
    handle: list,
    query: {},
  },
  'GET /admin/models/suggestions': {
    summary: 'Models for a first try: download size, memory, output speed on this machine (estimates), and which fit.',
    handle: suggest,
    query: {},
  },
  'POST /admin/models/load': {
    summary: 'Loads a served model, or adds one whose file is downloaded; 202 while it is loading.',
    body: schemaOf(LOAD),
    handle: load,
  },
  'POST /admin/models/unload': {
    summary: 'Unloads a model; one in use only with `force`, after `drain_ms`. The next request loads it again.',
    body: schemaOf(UNLOAD),
    handle: unload,
  },
  'POST /admin/models/benchmark': {
    summary: 'Measures the prompt and output speed of a model on this machine, within a few seconds.',
    body: schemaOf(BENCHMARK),
    handle: benchmark,
  },
  'DELETE /admin/models/:id{.+}': { summary: 'Unloads and removes an added model.', handle: remove, query: REMOVE },
} satisfies RouteCodes;

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
      cached?.map(({ reference, sizeBytes, requiredBytes, modifiedMs }) => ({
        reference,
        size_bytes: sizeBytes,
        required_bytes: requiredBytes,
        modified: Math.floor(modifiedMs / 1000),
        served_as: models.find(reference)?.id ?? null,
        fits: fitOf(requiredBytes, statuses, { budgetBytes, freeBytes }),
      })) ?? null,
  });
}

async function suggest({ request, services }: Exchange): Promise<Response> {
  readQuery(request, {});
  const catalog = requireCatalog(services);
  const { isHubReachable, models } = await catalog.suggest();
  const statuses = services.models.list();
  const limits = { budgetBytes: services.models.memory.budgetBytes, freeBytes: catalog.freeBytes() };
  return json({
    object: 'list',
    is_hub_reachable: isHubReachable,
    data: models.map(({ name, sizeBytes, requiredBytes, tokensPerSecond, isDownloaded }) => ({
      name,
      size_bytes: Math.round(sizeBytes),
      required_bytes: Math.round(requiredBytes),
      tokens_per_second: Number(tokensPerSecond.toPrecision(2)),
      is_downloaded: isDownloaded,
      fits: fitOf(requiredBytes, statuses, limits),
    })),
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

async function benchmark({ services, caller, readBody }: Exchange): Promise<Response> {
  const { model } = readFields(await readBody(), BENCHMARK);
  const lease = await services.models.acquire(model, { signal: caller.signal, waitMs: MAX_WAIT_MS });
  try {
    const { canGenerate, kernels, numThreads } = lease.model.modelInfo();
    if (!canGenerate) {
      throw refusal(400, 'invalid_value', `${lease.id} generates no text; nothing to measure`, { param: 'model' });
    }
    const speed = await measureBriefly(lease.model, caller.signal);
    return json({
      object: 'benchmark',
      model: lease.id,
      num_prompt_tokens: speed.numPromptTokens,
      num_tokens: speed.numTokens,
      prompt_tokens_per_second: median(speed.promptTokensPerSecond),
      tokens_per_second: median(speed.tokensPerSecond),
      kernels,
      num_threads: numThreads,
      measured: Math.floor(services.clock.wallClock() / 1000),
    });
  } finally {
    lease.release();
  }
}

async function remove({ request, params, services }: Exchange): Promise<Response> {
  const { force, drain_ms: drainMs } = readQuery(request, REMOVE);
  const id = params['id']!;
  await services.models.remove(id, { force: force ?? false, drainMs: drainMs ?? DEFAULT_DRAIN_MS });
  return json({ id, object: 'served_model.deleted', deleted: true });
}
