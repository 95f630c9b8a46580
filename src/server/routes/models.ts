import { refusal } from '../errors.ts';
import type { ModelStatus } from '../../runtime/requests/model-host.ts';
import { json, type Route } from '../route.ts';
import type { Services } from '../services.ts';
import { isAnthropicClient } from '../wire/anthropic/client.ts';
import { writeModelInfo, writeModelPage } from '../wire/anthropic/models.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';

const writeModel = ({ id, created, state, aliases }: ModelStatus) => ({
  id,
  object: 'model',
  created,
  owned_by: 'ruvllm',
  state,
  aliases,
  // Required by Mistral's client; the capabilities of a model are unknown until it is loaded.
  type: 'base',
  capabilities: {},
});

/** A model with an adapter is listed as a model. */
const writeAdapters = (status: ModelStatus) =>
  (status.model?.adapters() ?? [])
    .filter(({ tenant }) => tenant === null)
    .map(({ name }) => ({ ...writeModel(status), id: `${status.id}:${name}`, aliases: [], parent: status.id }));

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
export const modelRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/models',
    scope: 'read',
    summary: 'The available models.',
    body: null,
    errors: openaiErrors,
    handle({ request, services }) {
      const models = services.models.list();
      if (isAnthropicClient(request)) return json(writeModelPage(models, new URL(request.url).searchParams));
      const listed = models.flatMap((status) => [writeModel(status), ...writeAdapters(status)]);
      return json({ object: 'list', data: [...listed, ...writeRouterAlias(services)] });
    },
  },
  {
    method: 'GET',
    path: '/v1/models/:id{.+}',
    scope: 'read',
    summary: 'One model, by id or alias.',
    body: null,
    errors: openaiErrors,
    handle({ request, params, services }) {
      const status = services.models.find(params['id']!);
      if (status !== null) return json(isAnthropicClient(request) ? writeModelInfo(status) : writeModel(status));
      throw refusal(
        404,
        'model_not_found',
        `the model ${JSON.stringify(params['id']!.slice(0, 200))} does not exist here`,
        {
          param: 'model',
        },
      );
    },
  },
];
