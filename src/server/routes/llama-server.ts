import { adapterWishOption } from '../../runtime/adapters.ts';
import { refusal } from '../errors.ts';
import { resolveServerLimits } from '../limits.ts';
import { requireFirstModel, resolveModelName } from '../model-name.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import type { Services } from '../services.ts';
import { createSseResponse } from '../sse.ts';
import {
  infillSchema,
  loraField,
  nativeCompletionSchema,
  type NativeContext,
  type NativeRequest,
  readInfill,
  readNativeCompletion,
  scaledAdaptersOf,
} from '../wire/llama-server/completion-request.ts';
import { writeNativeCompletion, writeNativeStream } from '../wire/llama-server/completion-response.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { withLoadedModel } from './adapters.ts';
import { toSseError, withOrigin } from './answer.ts';

/** The adapters of a loaded model that every tenant may use, in the order of `GET /lora-adapters`. */
const sharedAdapters = ({ models }: Services, name: string) =>
  (models.find(name)?.model?.adapters() ?? []).filter(({ tenant }) => tenant === null);

const MODEL_QUERY = { model: { schema: { type: 'string' } } } as const;
const modelOfQuery = (request: Request): string | null => new URL(request.url).searchParams.get('model');

/** A request that names no model means the only one, or the first: llama-server has one. */
const contextOf = ({ services, caller }: Exchange): NativeContext => ({
  limits: services.limits,
  modelOf: (name) =>
    name === null || name === '' ? requireFirstModel(services) : resolveModelName(name, services, caller),
  adapterOf: (model, index) => sharedAdapters(services, model)[index]?.name ?? null,
});

async function answer(exchange: Exchange, request: NativeRequest): Promise<Response> {
  const { caller, services } = exchange;
  const running = await services.pipeline.start(await withModel(request.generation, exchange), caller);
  const parts = { model: running.modelId, tokenizer: running.tokenizer, request };
  if (!request.isStream) return withOrigin(running, json(await writeNativeCompletion(parts, running.events)));
  return withOrigin(
    running,
    createSseResponse({
      caller,
      services,
      messages: writeNativeStream(parts, running.events),
      abort: running.abort,
      toError: toSseError(openaiErrors, caller, services),
    }),
  );
}

/** llama-server's own routes, for its clients. */
export const routes = {
  'POST /completion': {
    summary: "Continues a text, in llama-server's format.",
    body: nativeCompletionSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    handle: async (exchange) =>
      answer(exchange, await exchange.readRequest((body) => readNativeCompletion(body, contextOf(exchange)))),
  },
  'POST /infill': {
    summary: "Fills the gap between two texts, in llama-server's format. Requires a model with tokens for that.",
    body: infillSchema,
    ignoresUnknownFields: true,
    handle: async (exchange) =>
      answer(exchange, await exchange.readRequest((body) => readInfill(body, contextOf(exchange)))),
  },
  'GET /lora-adapters': {
    summary: 'The adapters of a model and their scales for requests that choose none; `lora` chooses them by number.',
    query: MODEL_QUERY,
    handle({ request, services }) {
      const status = services.models.find(modelOfQuery(request) ?? requireFirstModel(services));
      if (status === null) throw refusal(404, 'model_not_found', 'the model does not exist here', { param: 'model' });
      const { id: modelId, model } = status;
      const adapters = sharedAdapters(services, modelId);
      const scaled = model === null ? [] : services.adapterScales.get(modelId, model);
      const scales = new Map(scaled.map(({ name, scale }) => [name, scale]));
      return json(adapters.map(({ name }, id) => ({ id, path: name, scale: scales.get(name) ?? 0 })));
    },
  },
  'POST /lora-adapters': {
    summary:
      "Sets the scales of a model's adapters for requests that choose none, in place of learned ones; the others get 0.",
    body: loraField.schema,
    query: MODEL_QUERY,
    async handle(exchange) {
      const { services } = exchange;
      const list = loraField.read(await exchange.readBody(), 'body');
      return withLoadedModel(exchange, modelOfQuery(exchange.request), ({ id, model }) => {
        const adapters = model.adapters().filter(({ tenant }) => tenant === null);
        const scaled = scaledAdaptersOf(list, 'body', (index) => adapters[index]?.name ?? null);
        services.adapterScales.set(id, adapterWishOption(scaled, 'body') ?? []);
        return json({ success: true });
      });
    },
  },
} satisfies RouteCodes;
