import type { RunningRequest } from '../../../runtime/requests/request-pipeline.ts';
import { resolveModel } from '../../resolve-model.ts';
import { type Exchange, json, type RouteCodes } from '../../route.ts';
import { withSavedDefaults } from '../../saved-defaults.ts';
import { type AnswerHead, writeAnswer, writeAnswerStream, writeLoaded } from '../../wire/ollama/answer.ts';
import {
  chatSchema,
  generateSchema,
  type OllamaRequest,
  readChat,
  readGenerate,
} from '../../wire/ollama/generation-request.ts';
import { withOrigin } from '../answer.ts';
import { readRequestOf, streamObjects } from './exchange.ts';

export const routes = {
  'POST /api/chat': {
    summary: "Answers a conversation in Ollama's format, as a stream unless `stream` is false.",
    body: chatSchema,
    ignoresUnknownFields: true,
    handle: async (exchange) =>
      answer(exchange, 'chat', await readRequestOf(exchange, (body) => readChat(body, canUnload(exchange)))),
  },
  'POST /api/generate': {
    summary: "Answers one prompt in Ollama's format, as a stream unless `stream` is false.",
    body: generateSchema,
    ignoresUnknownFields: true,
    handle: async (exchange) =>
      answer(exchange, 'generate', await readRequestOf(exchange, (body) => readGenerate(body, canUnload(exchange)))),
  },
} satisfies RouteCodes;

async function answer(exchange: Exchange, kind: AnswerHead['kind'], request: OllamaRequest): Promise<Response> {
  const { caller, services } = exchange;
  const { clock, models, limits, routing } = services;
  const startMs = clock.now();
  const { id, saved } = await resolveModel(exchange, request.model, request.numContext);
  const settle = async (): Promise<void> => {
    const served = models.find(id, caller.tenant);
    if (request.keepAlive !== null && served !== null) await models.keepFor(served.id, request.keepAlive.idleMs);
  };
  const { generation } = request;
  const isUnload = generation === null && request.keepAlive?.idleMs === 0;
  let loadMs = 0;
  const head: AnswerHead = {
    model: request.model,
    kind,
    hasThinking: request.hasThinking,
    createdAt: () => new Date(clock.wallClock()).toISOString(),
    get loadMs() {
      return loadMs;
    },
    elapsedMs: () => clock.now() - startMs,
  };
  if (isUnload) {
    await settle();
    return json(writeLoaded(head, 'unload'));
  }
  const lease =
    id === routing?.config.alias ? null : await models.acquire(id, { ...caller, waitMs: limits.modelWaitMs });
  let running: RunningRequest;
  try {
    loadMs = clock.now() - startMs;
    if (generation === null) {
      lease?.release();
      await settle();
      return json(writeLoaded(head, 'load'));
    }
    const named = { ...generation, model: id };
    running = await services.pipeline.start(saved === null ? named : withSavedDefaults(named, saved), caller);
  } finally {
    lease?.release();
  }
  if (!request.isStream) {
    const body = await writeAnswer(head, running.events);
    await settle();
    return withOrigin(running, json(body));
  }
  const messages = withEnd(writeAnswerStream(head, running.events), settle);
  return withOrigin(running, streamObjects(exchange, messages, running.abort));
}

async function* withEnd<T>(items: AsyncIterable<T>, onEnd: () => Promise<void>): AsyncGenerator<T, void, undefined> {
  try {
    yield* items;
  } finally {
    await onEnd();
  }
}

/** Unloading a model slows down other callers. */
const canUnload = ({ caller }: Exchange): boolean => caller.scopes.includes('admin');
