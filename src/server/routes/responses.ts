import { refusal } from '../errors.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';
import type { LastChunk } from '../../runtime/requests/answer-chunks.ts';
import { resolveServerLimits } from '../limits.ts';
import { toPartEvents } from '../output-parts.ts';
import { openRequestTools } from '../mcp/request-tools.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { deleteStored, findStored, storeAnswer } from '../stored/find-stored.ts';
import type { ConversationItem, StoredObject } from '../stored/types.ts';
import { toConversationItems, toTurns } from '../wire/openai/conversation.ts';
import { PAGE_QUERY } from '../wire/openai/list-page.ts';
import { writeInputItems } from '../wire/openai/responses/input-item-list.ts';
import {
  promptOf,
  readResponseRequest,
  type ResponseHistory,
  type ResponseRequest,
  responseRequestSchema,
  turnsOf,
} from '../wire/openai/responses/request.ts';
import { type ApprovalRequest, findApprovals } from '../wire/openai/responses/mcp-tools.ts';
import {
  collectResponse,
  type ResponseHead,
  type ResponsePart,
  toTurn,
  writeEnded,
} from '../wire/openai/responses/response-object.ts';
import { createResponseStream } from '../wire/openai/responses/stream.ts';
import { answerHead, answerId, toSseError, withOrigin } from './answer.ts';
import { type Rounds, startRounds } from './response-rounds.ts';

const findResponse = (exchange: Exchange): Promise<StoredObject<'response'>> =>
  findStored(exchange, 'response', exchange.params['id']!);

/** The turns of the response or the conversation that a request continues. */
async function readHistory(
  exchange: Exchange,
  { previousId, conversationId }: ResponseRequest,
): Promise<ResponseHistory> {
  if (previousId !== null) {
    const error = { code: 'previous_response_not_found', param: 'previous_response_id' };
    const { content, owners } = await findStored(exchange, 'response', previousId, error);
    return { messages: content.messages, owners, items: outputOf(content.body) };
  }
  if (conversationId !== null) {
    const error = { code: 'conversation_not_found', param: 'conversation' };
    const { content, owners } = await findStored(exchange, 'conversation', conversationId, error);
    return { messages: toTurns(content.items), owners, items: content.items };
  }
  return { messages: [], owners: [], items: [] };
}

const outputOf = (body: object): readonly unknown[] => (body as { readonly output?: readonly unknown[] }).output ?? [];

async function readRequest(exchange: Exchange) {
  const { services } = exchange;
  const request = await exchange.readRequest((body) => readResponseRequest(body, services.limits));
  const history = await readHistory(exchange, request);
  const turns = turnsOf(request, history, services.limits);
  const generation = await withModel({ ...request.generation, prompts: [promptOf(request, turns)] }, exchange);
  // Requests for approval are in the input or in an earlier output.
  const earlier = findApprovals(history.items).requests;
  const requests = new Map<string, ApprovalRequest>([...earlier, ...request.approvals.requests]);
  return { ...request, generation, turns, owners: history.owners, approvals: { ...request.approvals, requests } };
}

/** Starts the answer; with MCP tools it may have several rounds. */
async function start(exchange: Exchange, request: Awaited<ReturnType<typeof readRequest>>): Promise<Rounds> {
  const { caller, services } = exchange;
  const { generation, mcpTools, mcpChoice, approvals, turns } = request;
  if (mcpTools.length === 0) {
    if (mcpChoice !== null) throw refusal(400, 'invalid_value', "'tool_choice' names an MCP server that is not in 'tools'", { param: 'tool_choice' }); // prettier-ignore
    const running = await services.pipeline.start(generation, caller);
    return {
      running,
      events: toPartEvents(running.events, { hasText: true }),
      turns: null,
      isErased: running.isErased,
      abort: running.abort,
    };
  }
  const names = new Set(generation.tools.map(({ name }) => name));
  const mcp = await openRequestTools(exchange, mcpTools, names);
  return startRounds(exchange, {
    generation,
    promptOf: (all) => promptOf(request, all),
    turns,
    mcp,
    mcpChoice,
    approvals,
    responseId: answerId('resp', caller),
  });
}

async function create(exchange: Exchange): Promise<Response> {
  const { caller, services } = exchange;
  const { clock, stored } = services;
  const request = await readRequest(exchange);
  const rounds = await start(exchange, request);
  const { running } = rounds;
  const { created, model, extensions } = answerHead('resp', caller, services, running);
  const id = answerId('resp', caller);
  const { temperature, topP } = running.route?.sampling ?? running.sampling;
  const echo = { ...request.echo, temperature, top_p: topP, ...extensions };
  const head: ResponseHead = { id, created, model, echo, tokenizer: running.tokenizer };

  const end = async (parts: readonly ResponsePart[], finished: LastChunk) => {
    const body = writeEnded(head, parts, finished, Math.floor(clock.wallClock() / 1000));
    if (rounds.isErased()) return body;
    const owner = { requestId: caller.requestId, userId: request.generation.options.user ?? null };
    const storeResponse = (): Promise<boolean> => {
      const response: StoredObject<'response'> = {
        id,
        type: 'response',
        createdMs: clock.wallClock(),
        model,
        metadata: request.metadata,
        owners: [...request.owners, owner],
        content: { body, ...contentOf(rounds, request.turns, parts) },
      };
      return storeAnswer(exchange, stored.put(caller.tenant, response));
    };
    const appendTo = (conversationId: string): Promise<boolean> => {
      const items = [...toConversationItems(request.input, `${caller.requestId}_in`), ...body.output];
      const append = (conversation: StoredObject<'conversation'>): StoredObject<'conversation'> => ({
        ...conversation,
        owners: [...conversation.owners, owner],
        content: { items: [...conversation.content.items, ...(items as readonly ConversationItem[])] },
      });
      return storeAnswer(exchange, stored.update(caller.tenant, 'conversation', conversationId, append));
    };
    const [isStored] = await Promise.all([
      request.isStored && storeResponse(),
      request.conversationId === null ? null : appendTo(request.conversationId),
    ]);
    return { ...body, store: isStored };
  };

  if (!request.isStream) {
    const { parts, finished } = await collectResponse(rounds.events);
    return withOrigin(running, json(await end(parts, finished)));
  }
  const { messages, writeFailed } = createResponseStream(head, rounds.events, end);
  return withOrigin(
    running,
    createSseResponse({
      caller,
      services,
      messages,
      abort: rounds.abort,
      toError: toSseError({ body: writeFailed }, caller, services, 'response.failed'),
    }),
  );
}

/** The turns that the next response continues, and how many of them are the answer. */
function contentOf({ turns }: Rounds, input: readonly ChatMessage[], parts: readonly ResponsePart[]) {
  if (turns === null) return { messages: [...input, toTurn(parts)] };
  const made = turns();
  return { messages: [...made.input, ...made.answer], numAnswerTurns: made.answer.length };
}

/** `POST /v1/responses` and stored responses. */
export const routes = {
  'POST /v1/responses': {
    summary: 'Answers, optionally continuing a stored response, at once or as a stream.',
    body: responseRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    handle: create,
  },
  'GET /v1/responses/:id': {
    summary: 'A stored response.',
    async handle(exchange) {
      if (new URL(exchange.request.url).searchParams.get('stream') === 'true') {
        throw refusal(400, 'unsupported', "'stream': stored responses cannot be streamed", { param: 'stream' });
      }
      return json((await findResponse(exchange)).content.body);
    },
  },
  'DELETE /v1/responses/:id': {
    summary: 'Deletes a stored response; its continuations stay.',
    async handle(exchange) {
      const id = exchange.params['id']!;
      await deleteStored(exchange, 'response', id);
      return json({ id, object: 'response', deleted: true });
    },
  },
  'GET /v1/responses/:id/input_items': {
    summary: 'The input items of a stored response.',
    query: PAGE_QUERY,
    async handle(exchange) {
      return json(writeInputItems(await findResponse(exchange), new URL(exchange.request.url).searchParams));
    },
  },
  'POST /v1/responses/:id/cancel': {
    summary: 'Cancels a background response, which this version does not support.',
    async handle(exchange) {
      const { id } = await findResponse(exchange);
      const message = `response ${id} does not run in the background; close its stream to cancel it`;
      throw refusal(400, 'response_not_cancellable', message);
    },
  },
  'POST /v1/responses/input_tokens': {
    summary: 'Counts the tokens of a request for a response.',
    body: responseRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { generation } = await readRequest(exchange);
      const numTokens = await exchange.services.pipeline.countTokens(generation, exchange.caller);
      return json({ object: 'response.input_tokens', input_tokens: numTokens });
    },
  },
} satisfies RouteCodes;
