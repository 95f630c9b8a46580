import { refusal } from '../errors.ts';
import type { LastChunk } from '../../runtime/requests/answer-chunks.ts';
import { resolveServerLimits } from '../limits.ts';
import { collectParts, type OutputPart } from '../output-parts.ts';
import type { StoredResponse } from '../response-store.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type Route } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { writeInputItems } from '../wire/openai/responses/input-item-list.ts';
import { readResponseRequest, type ResponseRequest, responseRequestSchema } from '../wire/openai/responses/request.ts';
import { type ResponseHead, toTurn, writeEnded } from '../wire/openai/responses/response-object.ts';
import { createResponseStream } from '../wire/openai/responses/stream.ts';
import { answerHead, answerId, toSseError, withOrigin } from './answer.ts';

function findStored({ caller, services }: Exchange, id: string, code: string, param: string | null): StoredResponse {
  const stored = services.responses.find(caller.tenant, id);
  if (stored !== null) return stored;
  const message = `response ${JSON.stringify(id.slice(0, 200))} not found`;
  throw refusal(404, code, message, { param });
}

async function readRequest(exchange: Exchange): Promise<ResponseRequest> {
  const find = (id: string): StoredResponse =>
    findStored(exchange, id, 'previous_response_not_found', 'previous_response_id');
  const request = await exchange.readRequest((body) => readResponseRequest(body, exchange.services.limits, find));
  return { ...request, generation: await withModel(request.generation, exchange) };
}

async function create(exchange: Exchange): Promise<Response> {
  const { caller, services } = exchange;
  const { limits, clock, responses } = services;
  const request = await readRequest(exchange);
  const running = await services.pipeline.start(request.generation, caller);
  const { created, model, extensions } = answerHead('resp', caller, services, running);
  const id = answerId('resp', caller);
  const { temperature, topP } = running.route?.sampling ?? running.sampling;
  const echo = { ...request.echo, temperature, top_p: topP, ...extensions };
  const head: ResponseHead = { id, created, model, echo, tokenizer: running.tokenizer };

  const end = (parts: readonly OutputPart[], finished: LastChunk) => {
    const body = writeEnded(head, parts, finished, Math.floor(clock.wallClock() / 1000));
    if (request.isStored && !running.isErased()) {
      const owner = { requestId: caller.requestId, userId: request.generation.options.user ?? null };
      const messages = [...request.messages, toTurn(parts)];
      responses.put(caller.tenant, { id, body, messages, owners: [...request.owners, owner] });
    }
    return body;
  };

  if (!request.isStream) {
    const { parts, finished } = await collectParts(running.events, { hasText: true });
    return withOrigin(running, json(end(parts, finished)));
  }
  const { messages, writeFailed } = createResponseStream(head, running.events, end);
  return withOrigin(
    running,
    createSseResponse({
      messages,
      abort: running.abort,
      toError: toSseError({ body: writeFailed }, caller, services, 'response.failed'),
      keepAliveMs: limits.keepAliveMs,
      clock,
    }),
  );
}

/** `POST /v1/responses` and stored responses. */
export const responseRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/responses',
    scope: 'inference',
    summary: 'Answers, optionally continuing a stored response, at once or as a stream.',
    body: responseRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    errors: openaiErrors,
    handle: create,
  },
  {
    method: 'GET',
    path: '/v1/responses/:id',
    scope: 'read',
    summary: 'A stored response.',
    body: null,
    errors: openaiErrors,
    handle(exchange) {
      if (new URL(exchange.request.url).searchParams.get('stream') === 'true') {
        throw refusal(400, 'unsupported', "'stream': stored responses cannot be streamed", { param: 'stream' });
      }
      return json(findStored(exchange, exchange.params['id']!, 'not_found', null).body);
    },
  },
  {
    method: 'DELETE',
    path: '/v1/responses/:id',
    scope: 'inference',
    summary: 'Deletes a stored response; its continuations stay.',
    body: null,
    errors: openaiErrors,
    handle(exchange) {
      const { id } = findStored(exchange, exchange.params['id']!, 'not_found', null);
      exchange.services.responses.delete(exchange.caller.tenant, id);
      return json({ id, object: 'response', deleted: true });
    },
  },
  {
    method: 'GET',
    path: '/v1/responses/:id/input_items',
    scope: 'read',
    summary: 'The input items of a stored response.',
    body: null,
    errors: openaiErrors,
    handle(exchange) {
      const stored = findStored(exchange, exchange.params['id']!, 'not_found', null);
      return json(writeInputItems(stored, new URL(exchange.request.url).searchParams));
    },
  },
  {
    method: 'POST',
    path: '/v1/responses/:id/cancel',
    scope: 'inference',
    summary: 'Cancels a background response, which this version does not support.',
    body: null,
    errors: openaiErrors,
    handle(exchange) {
      const { id } = findStored(exchange, exchange.params['id']!, 'not_found', null);
      const message = `response ${id} does not run in the background; close its stream to cancel it`;
      throw refusal(400, 'response_not_cancellable', message);
    },
  },
  {
    method: 'POST',
    path: '/v1/responses/input_tokens',
    scope: 'inference',
    summary: 'Counts the tokens of a request for a response.',
    body: responseRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    errors: openaiErrors,
    async handle(exchange) {
      const { generation } = await readRequest(exchange);
      const numTokens = await exchange.services.pipeline.countTokens(generation, exchange.caller);
      return json({ object: 'response.input_tokens', input_tokens: numTokens });
    },
  },
];
