import type { TokenProgress } from '../generation-types.ts';
import type { AnswerChunk, LastChunk } from './answer-chunks.ts';
import type { StreamObserver } from '../observe-stream.ts';

/** Where a request's numbers go; `/metrics` and the live view read the same. */
export interface MeterSinks {
  firstToken(model: string, ms: number): void;
  interToken(model: string, ms: number): void;
  promptTokens(model: string, computed: number): void;
  generatedTokens(model: string, count: number): void;
  finished(model: string, event: LastChunk): void;
  unfinished(model: string): void;
}

/** Counts one request while it runs. */
export interface RequestMeter extends StreamObserver<AnswerChunk> {
  /** Of all answers together, so far. */
  readonly numTokens: number;
  /** Of the first prompt; null: not known yet. */
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly firstTokenMs: number | null;
  prompt(numTokens: number): void;
  /** One more token of an answer. */
  token(choice: number, progress: TokenProgress): void;
  /** `model` answers the request from now on. */
  serve(model: string): void;
}

export function createRequestMeter(sinks: MeterSinks): RequestMeter {
  const lastMs = new Map<number, number>();
  let model = '';
  let numTokens = 0;
  let numFinished = 0;
  let promptTokens: number | null = null;
  let cachedTokens: number | null = null;
  let firstTokenMs: number | null = null;

  function finish(event: LastChunk): void {
    const { choice, usage, timings } = event;
    sinks.finished(model, event);
    if (lastMs.has(choice)) return;
    // No per-token times (a remote engine, or an empty answer): only the means are available.
    sinks.firstToken(model, timings.firstTokenMs);
    if (usage.completionTokens > 1) sinks.interToken(model, timings.generateMs / (usage.completionTokens - 1));
    sinks.promptTokens(model, usage.promptTokens - usage.cachedTokens);
    sinks.generatedTokens(model, usage.completionTokens);
    numTokens += usage.completionTokens;
  }

  return {
    get numTokens() {
      return numTokens;
    },
    get promptTokens() {
      return promptTokens;
    },
    get cachedTokens() {
      return cachedTokens;
    },
    get firstTokenMs() {
      return firstTokenMs;
    },
    prompt(count) {
      promptTokens ??= count;
    },
    token(choice, progress) {
      const { elapsedMs } = progress;
      const before = lastMs.get(choice);
      lastMs.set(choice, elapsedMs);
      numTokens++;
      sinks.generatedTokens(model, 1);
      if (before !== undefined) return sinks.interToken(model, elapsedMs - before);
      firstTokenMs ??= elapsedMs;
      cachedTokens ??= progress.cachedTokens;
      sinks.firstToken(model, elapsedMs);
      sinks.promptTokens(model, progress.promptTokens - progress.cachedTokens);
    },
    serve: (backend) => void (model = backend),
    onEvent(event) {
      if (event.finishReason === null) return;
      numFinished++;
      finish(event);
    },
    onEnd() {
      if (numFinished === 0) sinks.unfinished(model);
    },
  };
}
