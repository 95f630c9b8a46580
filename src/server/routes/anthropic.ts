import { resolveServerLimits } from '../limits.ts';
import { withModel } from '../resolve-model.ts';
import { json, type RouteCodes } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { writeMemoryBlock } from '../wire/memory-block.ts';
import { anthropicErrors } from '../wire/anthropic/error-body.ts';
import { writeMessage } from '../wire/anthropic/message-response.ts';
import { PING, writeMessageStream } from '../wire/anthropic/message-stream.ts';
import {
  countRequestSchema,
  messagesRequestSchema,
  readCountRequest,
  readMessagesRequest,
} from '../wire/anthropic/messages-request.ts';
import { answerId, toSseError, withOrigin } from './answer.ts';

const documented = resolveServerLimits();

/** `POST /v1/messages` and `/v1/messages/count_tokens`. */
export const routes = {
  'POST /v1/messages': {
    summary: "Answers a conversation in Anthropic's format, at once or as a stream.",
    body: messagesRequestSchema(documented),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { caller, services, readRequest } = exchange;
      const { limits } = services;
      const request = await readRequest((body) => readMessagesRequest(body, limits));
      const { generation, isStream, ...options } = request;
      const running = await services.pipeline.start(await withModel(generation, exchange), caller);
      const extensions = writeMemoryBlock(running);
      const head = { id: answerId('msg', caller), model: running.modelId, extensions, ...options };
      if (!isStream) return withOrigin(running, json(await writeMessage(head, running.events)));
      return withOrigin(
        running,
        createSseResponse({
          caller,
          services,
          messages: writeMessageStream(head, running.events, running.promptTokens),
          abort: running.abort,
          toError: toSseError(anthropicErrors, caller, services, 'error'),
          keepAlive: PING,
        }),
      );
    },
  },
  'POST /v1/messages/count_tokens': {
    summary: "Counts the tokens of a conversation in Anthropic's format.",
    body: countRequestSchema(documented),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { caller, services, readRequest } = exchange;
      const generation = await readRequest((body) => readCountRequest(body, services.limits));
      const numTokens = await services.pipeline.countTokens(await withModel(generation, exchange), caller);
      return json({ input_tokens: numTokens });
    },
  },
} satisfies RouteCodes;
