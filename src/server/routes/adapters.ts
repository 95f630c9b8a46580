import { RuvLLMError } from '../../core/errors.ts';
import type { AdapterInfo } from '../../runtime/adapters.ts';
import { refusal } from '../errors.ts';
import { requireFirstModel } from '../model-name.ts';
import type { ModelLease } from '../../runtime/requests/model-host.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { readFields, requiredField, schemaOf, stringField } from '../wire/fields.ts';

const NEW_ADAPTER = {
  name: requiredField(stringField(64, 1)),
  path: requiredField(stringField(4096, 1)),
  model: stringField(512, 1),
  tenant: stringField(256, 1),
} as const;

const writeAdapter = (model: string, info: AdapterInfo) => ({
  id: `${model}:${info.name}`,
  object: 'adapter',
  name: info.name,
  model,
  tenant: info.tenant,
  content_hash: info.contentHash,
  num_matrices: info.numMatrices,
  rank: info.rank,
  size_bytes: info.sizeBytes,
  affects_kv: info.affectsKv,
});

const FILE_CODES: readonly string[] = ['invalid_model_file', 'not_found', 'io'];

/** A missing, invalid or mismatching adapter file is the client's mistake, not a server error. */
function refuseFile(error: unknown): never {
  if (!(error instanceof RuvLLMError) || !FILE_CODES.includes(error.code)) throw error;
  throw refusal(400, error.code, error.message, { param: 'path', cause: error });
}

/** One node must not answer with another adapter than the others. */
function requireOwnName({ services }: Exchange, model: string, name: string, tenant: string | null): void {
  if (tenant !== null || services.fleet?.releases?.isPublished(model, name) !== true) return;
  const message = `adapter ${model}:${name} was published to the fleet; change it with ruvllm fleet`;
  throw refusal(409, 'conflict', message, { param: 'name' });
}

/** Loads the model if necessary; null: the first one. */
export async function withLoadedModel<T>(
  { services, caller }: Exchange,
  name: string | null,
  work: (lease: ModelLease) => T | Promise<T>,
): Promise<T> {
  const { models, limits } = services;
  const id = name ?? requireFirstModel({ models });
  const lease = await models.acquire(id, { signal: caller.signal, waitMs: limits.modelWaitMs });
  try {
    return await work(lease);
  } finally {
    lease.release();
  }
}

/** Adapters of loaded models. Paths are on the server's machine: only those in its folders of adapters count. */
export const routes = {
  'GET /admin/adapters': {
    summary: 'The adapters of every loaded model.',
    handle: ({ services }) => {
      const data = services.models
        .list()
        .flatMap(({ id, model }) => (model?.adapters() ?? []).map((info) => writeAdapter(id, info)));
      return json({ object: 'list', data });
    },
  },
  'POST /admin/adapters': {
    summary:
      'Loads an adapter from a folder of adapters of the server. It replaces one of the same name; running requests keep the old one.',
    body: schemaOf(NEW_ADAPTER),
    handle: async (context) => {
      const { name, path, model: modelName, tenant } = readFields(await context.readBody(), NEW_ADAPTER);
      const { findAdapter } = context.services;
      if (findAdapter === null) throw refusal(501, 'not_implemented', 'this server has no folder of adapters');
      const found = await findAdapter(path).catch(refuseFile);
      return withLoadedModel(context, modelName, async ({ id, model }) => {
        requireOwnName(context, id, name, tenant ?? null);
        const loading = model.loadAdapter(found, { name, tenant });
        return json(writeAdapter(id, await loading.catch(refuseFile)), 201);
      });
    },
  },
  'DELETE /admin/adapters/:id{.+}': {
    summary: 'Unloads model:adapter, or an adapter of the first model.',
    handle: (context) => {
      const id = context.params['id']!;
      const at = id.lastIndexOf(':');
      const tenant = new URL(context.request.url).searchParams.get('tenant');
      return withLoadedModel(context, at < 0 ? null : id.slice(0, at), ({ id: modelId, model }) => {
        requireOwnName(context, modelId, id.slice(at + 1), tenant);
        if (model.unloadAdapter(id.slice(at + 1), { tenant }))
          return json({ id, object: 'adapter.deleted', deleted: true });
        throw refusal(404, 'adapter_not_found', `adapter ${JSON.stringify(id.slice(0, 200))} not found`);
      });
    },
  },
} satisfies RouteCodes;
