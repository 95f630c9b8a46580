import type { Caller } from '../caller.ts';
import { describeFailure } from '../errors.ts';
import type { RunningRequest } from '../../runtime/requests/request-pipeline.ts';
import type { ErrorFormat } from '../route.ts';
import type { Services } from '../services.ts';
import { PROMPT_BLOCKS_HEADER, writePromptBlocks } from '../fleet/prompt-blocks.ts';
import type { SseMessage } from '../sse.ts';
import { writeMemoryBlock } from '../wire/memory-block.ts';
import type { AnswerHead } from '../wire/openai/chat-response.ts';
import { traceOf } from '../../core/errors.ts';

/** Fields of every object of an answer; the id is that of the request with the format's prefix. */
export function answerHead(
  prefix: string,
  { requestId }: Caller,
  { clock, version }: Services,
  running: RunningRequest,
): AnswerHead {
  const { modelId, kernels } = running;
  return {
    id: `${prefix}-${requestId}`,
    created: Math.floor(clock.wallClock() / 1000),
    model: modelId,
    fingerprint: `ruvllm-${version}-${kernels}`,
    extensions: writeMemoryBlock(running),
  };
}

/** The id of an answer in formats with another separator. */
export function answerId(prefix: string, { requestId }: Caller): string {
  return `${prefix}_${requestId}`;
}

/** The last message of a failed stream: the error body of the format. */
export function toSseError(
  errors: ErrorFormat,
  { requestId }: Caller,
  { logger }: Services,
  event?: string,
): (error: unknown) => SseMessage {
  return (error) => {
    const failure = describeFailure(error);
    if (failure.status !== 499) {
      logger.log(failure.status >= 500 ? 'error' : 'warn', 'stream failed', {
        requestId,
        code: failure.code,
        ...(failure.status < 500 ? {} : { reason: traceOf(error) }),
      });
    }
    return { ...(event === undefined ? {} : { event }), data: JSON.stringify(errors.body(failure, requestId)) };
  };
}

/** Adds the router's decision and the recalled texts as headers, which streams send before their first event. */
export function withOrigin(running: RunningRequest, response: Response): Response {
  const { sources, recall, route } = running;
  const blocks = running.promptBlocks();
  if (blocks !== null) response.headers.set(PROMPT_BLOCKS_HEADER, writePromptBlocks(blocks));
  if (route !== null) {
    response.headers.set('x-route', route.candidate);
    response.headers.set('x-route-reason', route.reason);
  }
  if (recall !== null) response.headers.set('x-memory-outcome', recall.outcome);
  if (sources.length === 0) return response;
  response.headers.set('x-memory-sources', sources.map(({ number, id, kind }) => `${number}=${kind}:${id}`).join(' '));
  return response;
}
