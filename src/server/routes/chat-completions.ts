import type { AnswerChunk } from '../../runtime/requests/answer-chunks.ts';
import type { RunningRequest } from '../../runtime/requests/request-pipeline.ts';
import type { ChatMessage } from '../../runtime/lower-layers.ts';
import { pacedResponse } from '../paced-response.ts';
import { withModel } from '../resolve-model.ts';
import { type Exchange, json, type RouteCodes } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { storeAnswer } from '../stored/find-stored.ts';
import { type ChatRequest, chatRequestSchema, readChatRequest } from '../wire/openai/chat-request.ts';
import { type AnswerHead, collectChat, createChatCollector } from '../wire/openai/chat-response.ts';
import { writeChatStream } from '../wire/openai/chat-stream.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { resolveServerLimits } from '../limits.ts';
import { answerHead, toSseError, withOrigin } from './answer.ts';

/** `POST /v1/chat/completions`. */
export const routes = {
  'POST /v1/chat/completions': {
    summary: 'Answers a conversation, at once or as a stream.',
    body: chatRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { caller, services } = exchange;
      const request = await exchange.readRequest((body) => readChatRequest(body, services.limits));
      const { generation, isStream, hasUsageChunk, isOlderForm } = request;
      const running = await services.pipeline.start(await withModel(generation, exchange), caller);
      const head = answerHead('chatcmpl', caller, services, running);
      const options = { numChoices: generation.numChoices, tokenizer: running.tokenizer, hasUsageChunk, isOlderForm };
      const store = (body: object): Promise<void> => storeChat(exchange, request, running, head, body);
      if (!isStream) {
        const answer = await collectChat(running.events, options);
        const onEnd = (): void => {};
        const contentType = 'application/json';
        const { clock } = services;
        if (answer.isLong && !request.isStored)
          return withOrigin(
            running,
            pacedResponse(answer.writePieces(head), { contentType, clock, signal: caller.signal, onEnd }),
          );
        const body = answer.write(head);
        await store(body);
        return withOrigin(running, json(body));
      }
      const events = request.isStored ? collectEvents(running.events, options, (end) => store(end.write(head))) : running.events; // prettier-ignore
      return withOrigin(
        running,
        createSseResponse({
          caller,
          services,
          messages: writeChatStream(head, events, options),
          abort: running.abort,
          toError: toSseError(openaiErrors, caller, services),
        }),
      );
    },
  },
} satisfies RouteCodes;

/** Stores a completion if its request asks for it. */
async function storeChat(
  exchange: Exchange,
  { isStored, metadata, generation }: ChatRequest,
  running: RunningRequest,
  { id, model }: AnswerHead,
  body: object,
): Promise<void> {
  const { caller, services } = exchange;
  if (!isStored || running.isErased()) return;
  const writing = services.stored.put(caller.tenant, {
    id,
    type: 'chat.completion',
    createdMs: services.clock.wallClock(),
    model,
    metadata,
    owners: [{ requestId: caller.requestId, userId: generation.options.user ?? null }],
    content: { body, messages: generation.prompts[0] as readonly ChatMessage[] },
  });
  await storeAnswer(exchange, writing);
}

/** Passes events on; `end` gets all of them after the last, before the stream ends. */
async function* collectEvents(
  events: AsyncIterable<AnswerChunk>,
  options: Parameters<typeof createChatCollector>[0],
  end: (collector: ReturnType<typeof createChatCollector>) => Promise<void>,
): AsyncGenerator<AnswerChunk, void, undefined> {
  const collector = createChatCollector(options);
  for await (const event of events) {
    collector.add(event);
    yield event;
  }
  await end(collector);
}
