import { withModel } from '../resolve-model.ts';
import { json, type Route } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { chatRequestSchema, readChatRequest } from '../wire/openai/chat-request.ts';
import { writeChatCompletion } from '../wire/openai/chat-response.ts';
import { writeChatStream } from '../wire/openai/chat-stream.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { resolveServerLimits } from '../limits.ts';
import { answerHead, toSseError, withOrigin } from './answer.ts';

/** `POST /v1/chat/completions`. */
export const chatCompletions: Route = {
  method: 'POST',
  path: '/v1/chat/completions',
  scope: 'inference',
  summary: 'Answers a conversation, at once or as a stream.',
  body: chatRequestSchema(resolveServerLimits()),
  ignoresUnknownFields: true,
  errors: openaiErrors,
  async handle(exchange) {
    const { caller, services, readRequest } = exchange;
    const request = await readRequest((body) => readChatRequest(body, services.limits));
    const { generation, isStream, hasUsageChunk, isOlderForm } = request;
    const running = await services.pipeline.start(await withModel(generation, exchange), caller);
    const head = answerHead('chatcmpl', caller, services, running);
    const options = { numChoices: generation.numChoices, tokenizer: running.tokenizer, hasUsageChunk, isOlderForm };
    if (!isStream) return withOrigin(running, json(await writeChatCompletion(head, running.events, options)));
    return withOrigin(
      running,
      createSseResponse({
        messages: writeChatStream(head, running.events, options),
        abort: running.abort,
        toError: toSseError(openaiErrors, caller, services),
        keepAliveMs: services.limits.keepAliveMs,
        clock: services.clock,
      }),
    );
  },
};
