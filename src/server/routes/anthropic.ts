import { resolveServerLimits } from '../limits.ts';
import { json, type Route } from '../route.ts';
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
export const anthropicRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/messages',
    scope: 'inference',
    summary: "Answers a conversation in Anthropic's format, at once or as a stream.",
    body: messagesRequestSchema(documented),
    errors: anthropicErrors,
    async handle({ caller, services, readBody }) {
      const { limits, clock } = services;
      const { generation, isStream, hasThinking } = readMessagesRequest(await readBody(), limits);
      const running = await services.pipeline.start(generation, caller);
      const extensions = writeMemoryBlock(running);
      const head = { id: answerId('msg', caller), model: running.modelId, hasThinking, extensions };
      if (!isStream) return withOrigin(running, json(await writeMessage(head, running.events)));
      return withOrigin(
        running,
        createSseResponse({
          messages: writeMessageStream(head, running.events, running.promptTokens),
          abort: running.abort,
          toError: toSseError(anthropicErrors, caller, services, 'error'),
          keepAliveMs: limits.keepAliveMs,
          keepAlive: PING,
          clock,
        }),
      );
    },
  },
  {
    method: 'POST',
    path: '/v1/messages/count_tokens',
    scope: 'inference',
    summary: "Counts the tokens of a conversation in Anthropic's format.",
    body: countRequestSchema(documented),
    errors: anthropicErrors,
    async handle({ caller, services, readBody }) {
      const generation = readCountRequest(await readBody(), services.limits);
      return json({ input_tokens: await services.pipeline.countTokens(generation, caller) });
    },
  },
];
