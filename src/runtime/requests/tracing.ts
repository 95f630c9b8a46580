import { serializeError } from '../../core/errors.ts';
import { isChat } from '../prompt.ts';
import type { AnswerChunk } from './answer-chunks.ts';
import type { RequestCaller, TraceContext } from './caller.ts';
import type { RememberedRequest } from './remember-request.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { StreamObserver } from '../observe-stream.ts';

/** Span attributes, named by the OpenTelemetry conventions for generative AI. */
export type SpanAttributes = Readonly<Record<string, string | number | readonly string[]>>;

/** One traced piece of work. */
export interface Span {
  /** Where its own calls go on; null: there is no trace. */
  readonly context: TraceContext | null;
  set(attributes: SpanAttributes): void;
  /** With the kind of error that ended it, or null. */
  end(errorType: string | null): void;
}

/** Where spans go. */
export interface Tracer {
  /** `trace`: what it is a part of; null: a trace of its own. `kind`: by default `server`. */
  start(name: string, attributes: SpanAttributes, trace: TraceContext | null, kind?: SpanKind): Span;
}

/** `server`: a request of a client. `internal`: a part of one. */
export type SpanKind = 'server' | 'internal';

export const silentTracer: Tracer = { start: (_name, _attributes, trace) => ({ context: trace, set() {}, end() {} }) };

/** Recall as a part of the request, and the writing that its answer waits for. */
export async function traceMemory(
  tracer: Tracer,
  trace: TraceContext | null,
  recall: () => Promise<RememberedRequest>,
): Promise<RememberedRequest> {
  const open = (name: string): Span => tracer.start(name, {}, trace, 'internal');
  const span = open('memory recall');
  let recalled: RememberedRequest;
  try {
    recalled = await recall();
  } catch (error) {
    span.end(serializeError(error).code);
    throw error;
  }
  span.end(null);
  const { observer } = recalled;
  if (observer === null) return recalled;
  const onEnd = (error: unknown): Promise<void> | void => {
    const writing = observer.onEnd(error);
    if (writing === undefined) return;
    const written = open('memory write');
    return Promise.resolve(writing).finally(() => written.end(null));
  };
  return { ...recalled, observer: { onEvent: (event) => observer.onEvent(event), onEnd } };
}

/** The operation of a request in the conventions for generative AI. */
export const operationOf = ({ prompts }: GenerationRequest): 'chat' | 'text_completion' =>
  isChat(prompts[0]!) ? 'chat' : 'text_completion';

/** Starts the span of a request: what was asked for, never the words. */
export function startRequestSpan(
  tracer: Tracer,
  request: GenerationRequest,
  { requestId, trace }: RequestCaller,
): Span {
  const operation = operationOf(request);
  const { maxTokens, temperature, topP, seed } = request.options;
  const numbers = {
    'gen_ai.request.max_tokens': maxTokens,
    'gen_ai.request.temperature': temperature,
    'gen_ai.request.top_p': topP,
    'gen_ai.request.seed': seed ?? undefined,
  };
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': 'ruvllm',
    'gen_ai.request.model': request.model,
    'gen_ai.request.choice.count': request.numChoices,
    'gen_ai.response.id': requestId,
    ...(Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)) as SpanAttributes),
  };
  return tracer.start(`${operation} ${request.model}`, attributes, trace);
}

/** Ends the span of a request with its usage, or with the code of the error that ended it. */
export function traceAnswer(span: Span, modelId: string): StreamObserver<AnswerChunk> {
  const reasons: string[] = [];
  let inputTokens = 0;
  let outputTokens = 0;
  return {
    onEvent(event) {
      if (event.finishReason === null) return;
      reasons.push(event.finishReason);
      inputTokens = Math.max(inputTokens, event.usage.promptTokens);
      outputTokens += event.usage.completionTokens;
    },
    onEnd(error) {
      span.set({
        'gen_ai.response.model': modelId,
        'gen_ai.usage.input_tokens': inputTokens,
        'gen_ai.usage.output_tokens': outputTokens,
        'gen_ai.response.finish_reasons': reasons,
      });
      span.end(error === null ? null : serializeError(error).code);
    },
  };
}
