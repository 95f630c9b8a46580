import { refusal } from '../errors.ts';
import { resolveServerLimits } from '../limits.ts';
import { resolveModelName } from '../model-name.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type Route } from '../route.ts';
import type { Services } from '../services.ts';
import { createSseResponse } from '../sse.ts';
import {
  infillSchema,
  nativeCompletionSchema,
  type NativeContext,
  type NativeRequest,
  readInfill,
  readNativeCompletion,
} from '../wire/llama-server/completion-request.ts';
import { writeNativeCompletion, writeNativeStream } from '../wire/llama-server/completion-response.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { toSseError, withOrigin } from './answer.ts';

/** The adapters of a loaded model that every tenant may use, in the order of `GET /lora-adapters`. */
const sharedAdapters = ({ models }: Services, name: string) =>
  (models.find(name)?.model?.adapters() ?? []).filter(({ tenant }) => tenant === null);

/** A request that names no model means the only one, or the first: llama-server has one. */
const firstModel = ({ models }: Services): string => models.list()[0]!.id;

const contextOf = (services: Services): NativeContext => ({
  limits: services.limits,
  modelOf: (name) => (name === null || name === '' ? firstModel(services) : resolveModelName(name, services)),
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
      messages: writeNativeStream(parts, running.events),
      abort: running.abort,
      toError: toSseError(openaiErrors, caller, services),
      keepAliveMs: services.limits.keepAliveMs,
      clock: services.clock,
    }),
  );
}

/** llama-server's own routes, for its clients. */
export const llamaServerRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/completion',
    scope: 'inference',
    summary: "Continues a text, in llama-server's format.",
    body: nativeCompletionSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    errors: openaiErrors,
    handle: async (exchange) =>
      answer(exchange, await exchange.readRequest((body) => readNativeCompletion(body, contextOf(exchange.services)))),
  },
  {
    method: 'POST',
    path: '/infill',
    scope: 'inference',
    summary: "Fills the gap between two texts, in llama-server's format. Requires a model with tokens for that.",
    body: infillSchema,
    ignoresUnknownFields: true,
    errors: openaiErrors,
    handle: async (exchange) =>
      answer(exchange, await exchange.readRequest((body) => readInfill(body, contextOf(exchange.services)))),
  },
  {
    method: 'GET',
    path: '/lora-adapters',
    scope: 'read',
    summary: 'The adapters of the first model; requests choose them by number with `lora`.',
    body: null,
    errors: openaiErrors,
    handle: ({ services }) =>
      json(sharedAdapters(services, firstModel(services)).map(({ name }, id) => ({ id, path: name, scale: 0 }))),
  },
  {
    method: 'POST',
    path: '/lora-adapters',
    scope: 'inference',
    summary: 'Not supported: adapters are chosen by each request.',
    body: null,
    errors: openaiErrors,
    handle() {
      throw refusal(501, 'unsupported', "a scale for all requests is not supported: send 'lora' with each request");
    },
  },
];
