import { refusal } from '../errors.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import { displayNameOf } from '../model-name.ts';
import type { SavedModel } from '../model-library.ts';
import { json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import { isAnthropicClient } from '../wire/anthropic/client.ts';
import { writeModelInfo, writeModelPage } from '../wire/anthropic/models.ts';

const writeEntry = (id: string, displayName: string, created: number) => ({
  id,
  object: 'model',
  created,
  owned_by: 'ruvllm',
  display_name: displayName,
  // Required by Mistral's client.
  type: 'base',
  capabilities: {},
});

const writeModel = (status: ModelStatus, services: Services) => ({
  ...writeEntry(status.id, displayNameOf(status, services), status.created),
  // Unknown until it is loaded.
  capabilities: status.model === null ? {} : { vision: status.model.modelInfo().canSeeImages },
  state: status.state,
  aliases: status.aliases,
});

/** A model with an adapter is listed as a model. */
const writeAdapters = (status: ModelStatus, services: Services) =>
  (status.model?.adapters() ?? [])
    .filter(({ tenant }) => tenant === null)
    .map(({ name }) => {
      const model = writeModel(status, services);
      const names = { id: `${status.id}:${name}`, display_name: `${model.display_name} + ${name}`, aliases: [] };
      return { ...model, ...names, parent: status.id };
    });

const writeSaved = (name: string, { createdMs }: Pick<SavedModel, 'createdMs'>) =>
  writeEntry(name, name, Math.floor(createdMs / 1000));

/** Models saved by users under names that are not served. */
async function listSaved({ library, models }: Services) {
  const saved = (await library?.saved.list()) ?? [];
  return saved.filter(({ name }) => models.find(name) === null).map((one) => writeSaved(one.name, one));
}

const writeRouterAlias = ({ routing, startedMs }: Services) =>
  routing === null
    ? []
    : [
        {
          id: routing.config.alias,
          object: 'model',
          created: Math.floor(startedMs / 1000),
          owned_by: 'ruvllm',
          candidates: routing.config.candidates.map(({ id }) => id),
          remote_candidates: routing.config.candidates.filter(({ kind }) => kind === 'remote').map(({ id }) => id),
        },
      ];

/** `GET /v1/models` and `/v1/models/ID`, in OpenAI's or Anthropic's format. */
export const routes = {
  'GET /v1/models': {
    summary: 'The available models.',
    async handle({ request, services }) {
      const models = services.models.list();
      if (isAnthropicClient(request)) {
        return json(writeModelPage(models, services, new URL(request.url).searchParams));
      }
      const served = models.flatMap((status) => [writeModel(status, services), ...writeAdapters(status, services)]);
      return json({
        object: 'list',
        data: [...served, ...(await listSaved(services)), ...writeRouterAlias(services)],
      });
    },
  },
  'GET /v1/models/:id{.+}': {
    summary: 'One model, by id or alias.',
    async handle({ request, params, services, caller }) {
      const id = params['id']!;
      const status = services.models.find(id, caller.tenant);
      const write = isAnthropicClient(request) ? writeModelInfo : writeModel;
      if (status !== null) return json(write(status, services));
      const saved = (await services.library?.saved.find(id)) ?? null;
      if (saved !== null) return json(writeSaved(id, saved));
      const message = `the model ${JSON.stringify(id.slice(0, 200))} does not exist here`;
      throw refusal(404, 'model_not_found', message, { param: 'model' });
    },
  },
} satisfies RouteCodes;
