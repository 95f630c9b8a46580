import { resolveServerLimits } from '../limits.ts';
import { pacedResponse } from '../paced-response.ts';
import { withModel } from '../resolve-model.ts';
import { json, type RouteCodes } from '../route.ts';
import { createSseResponse } from '../sse.ts';
import { completionRequestSchema, readCompletionRequest } from '../wire/openai/completion-request.ts';
import { collectCompletion, writeCompletionStream } from '../wire/openai/completion-response.ts';
import { openaiErrors } from '../wire/openai/error-body.ts';
import { answerHead, toSseError, withOrigin } from './answer.ts';

/** `POST /v1/completions`. */
export const routes = {
  'POST /v1/completions': {
    summary: 'Continues one or several texts, at once or as a stream.',
    body: completionRequestSchema(resolveServerLimits()),
    ignoresUnknownFields: true,
    async handle(exchange) {
      const { caller, services, readRequest } = exchange;
      const request = await readRequest((body) => readCompletionRequest(body, services.limits));
      const { generation, isStream } = request;
      const running = await services.pipeline.start(await withModel(generation, exchange), caller);
      const head = answerHead('cmpl', caller, services, running);
      const options = { ...request, tokenizer: running.tokenizer };
      if (!isStream) {
        const answer = await collectCompletion(head, running.events, options);
        if (!answer.isLong) return withOrigin(running, json(answer.write()));
        const pacing = { clock: services.clock, signal: caller.signal, onEnd() {} };
        return withOrigin(running, pacedResponse(answer.writePieces(), { contentType: 'application/json', ...pacing }));
      }
      return withOrigin(
        running,
        createSseResponse({
          caller,
          services,
          messages: writeCompletionStream(head, running.events, options),
          abort: running.abort,
          toError: toSseError(openaiErrors, caller, services),
        }),
      );
    },
  },
} satisfies RouteCodes;
