import { serializeError, type SerializedError } from '../../core/errors.ts';
import type { OpenCall, ServedCall } from './request-memory.ts';
import { MAX_REMEMBERED_TEXT } from './request-memory.ts';

/** Gathers what is written down of a call while it runs. */
export interface CallRecorder {
  /** A piece of what is said, or of a call of a tool. */
  addText(text: string): void;
  /** Of one answer that has ended; several add up. */
  addUsage(usage: { readonly promptTokens: number; readonly completionTokens: number }): void;
  /** What the engine says of its own time; of several answers the longest counts. */
  addTimings(timings: { readonly queuedMs: number; readonly promptMs: number }): void;
  /** Who answers, from now on; times count from here. */
  serve(served: ServedCall): void;
  /** Null: it went well. Only the first end counts. */
  end(error: unknown): void;
}

/** Whoever leaves in the middle is no failure of ours, but the answer was never whole. */
export const LEFT: SerializedError = { code: 'aborted', message: 'the caller left', data: {}, isRetryable: false };

export function createCallRecorder(call: OpenCall, now: () => number): CallRecorder {
  let startMs = now();
  let served: ServedCall | null = null;
  const parts: string[] = [];
  let length = 0;
  let ttftMs: number | null = null;
  let numPromptTokens = 0;
  let numOutputTokens = 0;
  let queueMs: number | null = null;
  let promptMs: number | null = null;
  let isEnded = false;
  return {
    addText(text) {
      ttftMs ??= now() - startMs;
      if (length > MAX_REMEMBERED_TEXT) return;
      parts.push(text);
      length += text.length;
    },
    addUsage({ promptTokens, completionTokens }) {
      numPromptTokens = Math.max(numPromptTokens, promptTokens);
      numOutputTokens += completionTokens;
    },
    addTimings(timings) {
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
      call.finish({
        text: parts.join(''),
        numPromptTokens,
        numOutputTokens,
        ttftMs,
        generationMs: now() - startMs,
        queueMs,
        promptMs,
        served,
        error: error === null ? null : error === LEFT ? LEFT : serializeError(error),
      });
    },
  };
}
