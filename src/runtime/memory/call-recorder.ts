import { serializeError } from '../../core/errors.ts';
import type { GenerateChunk } from '../generation-types.ts';
import type { ReflectionReport } from '../reflection/types.ts';
import type { OpenCall } from './request-memory.ts';
import type { RecordedCall, ServedCall } from './types.ts';
import { MAX_REMEMBERED_TEXT } from './recall-parts.ts';

/** Collects the data of a call's audit entry while it runs. */
export interface CallRecorder {
  /** Records visible text and tool calls; the tokens of several answers add up, and their longest times count. */
  add(chunk: GenerateChunk, hasText?: boolean): void;
  /** Sets the answering model; times count from here. */
  serve(served: ServedCall): void;
  /** Null: success. Only the first call counts. Returns what `finish` of the call returns. */
  end(error: unknown): Promise<void> | void;
}

/** `isJson`: whether the answer must be JSON. */
export function createCallRecorder(call: OpenCall, now: () => number, isJson = false): CallRecorder {
  let startMs = now();
  let served: ServedCall | null = null;
  const parts: string[] = [];
  let length = 0;
  let isComplete = false;
  let ttftMs: number | null = null;
  let numPromptTokens = 0;
  let numOutputTokens = 0;
  let queueMs: number | null = null;
  let promptMs: number | null = null;
  let meanLogprob: number | null = null;
  let reflection: ReflectionReport | null = null;
  const toolCalls: { arguments: string; outcome: RecordedCall['outcome'] }[] = [];
  let isEnded = false;
  return {
    add(chunk, hasText = true) {
      ttftMs ??= now() - startMs;
      const calls = chunk.toolCalls.map(({ isFirst, name, arguments: piece }) => (isFirst ? name : '') + piece);
      if (hasText && length <= MAX_REMEMBERED_TEXT) {
        const text = chunk.text + calls.join('');
        parts.push(text);
        length += text.length;
        for (const { index, arguments: piece, outcome } of chunk.toolCalls) {
          const recorded = (toolCalls[index] ??= { arguments: '', outcome: null });
          recorded.arguments += piece;
          recorded.outcome = outcome;
        }
      }
      if (chunk.finishReason === null) return;
      const { usage, timings } = chunk;
      if (hasText) {
        meanLogprob = chunk.meanLogprob ?? null;
        reflection = chunk.reflection ?? null;
      }
      if (hasText) isComplete = chunk.finishReason === 'stop' && chunk.stopString === null;
      numPromptTokens = Math.max(numPromptTokens, usage.promptTokens);
      numOutputTokens += usage.completionTokens;
      queueMs = Math.max(queueMs ?? 0, timings.queuedMs);
      promptMs = Math.max(promptMs ?? 0, timings.promptMs);
    },
    serve(by) {
      served = by;
      startMs = now();
    },
    end(error) {
      if (isEnded) return;
      isEnded = true;
      return call.finish({
        text: parts.join(''),
        isComplete,
        numPromptTokens,
        numOutputTokens,
        ttftMs,
        generationMs: now() - startMs,
        queueMs,
        promptMs,
        meanLogprob,
        reflection,
        isJson,
        calls: toolCalls.filter((recorded) => recorded !== undefined),
        served,
        error: error === null ? null : serializeError(error),
      });
    },
  };
}
