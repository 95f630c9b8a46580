import { isChat } from '../runtime/prompt.ts';
import type { Caller } from './caller.ts';
import { describeFailure } from './errors.ts';
import type { GenerateJob, JobEvent } from './generate-job.ts';
import type { TraceContext } from './trace-context.ts';

/** What a span carries; names follow the conventions for generative AI. */
export type SpanAttributes = Readonly<Record<string, string | number | readonly string[]>>;

/** One traced piece of work. */
export interface Span {
  set(attributes: SpanAttributes): void;
  /** With the kind of error that ended it, or null. */
  end(errorType: string | null): void;
}

/** Where spans go. */
export interface Tracer {
  /** `trace`: where the client's own trace goes on; null: a trace of its own. */
  start(name: string, attributes: SpanAttributes, trace: TraceContext | null): Span;
}

export const silentTracer: Tracer = { start: () => ({ set() {}, end() {} }) };

/** Starts the span of a job: what was asked for, never the words. */
export function startJobSpan(tracer: Tracer, job: GenerateJob, { requestId, trace }: Caller): Span {
  const operation = isChat(job.prompts[0]!) ? 'chat' : 'text_completion';
  const { maxTokens, temperature, topP, seed } = job.options;
  const numbers = {
    'gen_ai.request.max_tokens': maxTokens,
    'gen_ai.request.temperature': temperature,
    'gen_ai.request.top_p': topP,
    'gen_ai.request.seed': seed ?? undefined,
  };
  const attributes: SpanAttributes = {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': 'ruvllm',
    'gen_ai.request.model': job.model,
    'gen_ai.request.choice.count': job.numChoices,
    'gen_ai.response.id': requestId,
    ...(Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== undefined)) as SpanAttributes),
  };
  return tracer.start(`${operation} ${job.model}`, attributes, trace);
}

/** Passes a job's events through and ends its span with what they said. */
export async function* traceJob(
  span: Span,
  events: AsyncGenerator<JobEvent, void, undefined>,
): AsyncGenerator<JobEvent, void, undefined> {
  const reasons: string[] = [];
  let inputTokens = 0;
  let outputTokens = 0;
  let errorType: string | null = 'aborted'; // whoever leaves in the middle says nothing more
  try {
    for await (const event of events) {
      if (event.type === 'finished') {
        reasons.push(event.finishReason);
        inputTokens = Math.max(inputTokens, event.usage.promptTokens);
        outputTokens += event.usage.completionTokens;
      }
      yield event;
    }
    errorType = null;
  } catch (error) {
    errorType = describeFailure(error).code;
    throw error;
  } finally {
    span.set({
      'gen_ai.usage.input_tokens': inputTokens,
      'gen_ai.usage.output_tokens': outputTokens,
      'gen_ai.response.finish_reasons': reasons,
    });
    span.end(errorType);
  }
}
