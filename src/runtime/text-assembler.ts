import type { FinishedEvent, TokenEvent } from '../engine/types.ts';
import type { StopMatcher, StopResult } from '../sampling/stop-matcher.ts';
import type { StreamDecoder } from '../tokenizers/types.ts';
import type { GenerateChunk, GenerateSummary, Timings } from './generation-types.ts';

export interface AssemblerOptions {
  readonly decoder: StreamDecoder;
  readonly stopMatcher: StopMatcher;
  readonly numPromptTokens: number;
  readonly seed: number;
  readonly hasLogprobs: boolean;
  /** Milliseconds from the call to now. */
  readonly elapsedMs: () => number;
}

/** Turns the tokens of one sequence into chunks of text; the last chunk, and only it, has a finish reason. */
export interface TextAssembler {
  handle(event: TokenEvent | FinishedEvent): GenerateChunk;
}

export function createTextAssembler(options: AssemblerOptions): TextAssembler {
  const { decoder, stopMatcher } = options;
  let numTokens = 0;
  let firstTokenMs: number | null = null;
  let first: TokenEvent | FinishedEvent | null = null;
  let last: TokenEvent | FinishedEvent | null = null;

  function summarize(finishReason: 'stop' | 'length', stopString: string | null): GenerateSummary {
    const { numPromptTokens, seed } = options;
    const usage = {
      promptTokens: numPromptTokens,
      cachedTokens: first!.cachedTokens,
      completionTokens: numTokens,
      totalTokens: numPromptTokens + numTokens,
    };
    return { finishReason, usage, timings: measure(), seed, stopString };
  }

  function measure(): Timings {
    const promptMs = first!.elapsedMs - first!.queuedMs;
    const generateMs = last!.elapsedMs - first!.elapsedMs;
    return {
      firstTokenMs: firstTokenMs!,
      queuedMs: first!.queuedMs,
      promptMs,
      generateMs,
      promptTokensPerSecond: perSecond(options.numPromptTokens - first!.cachedTokens, promptMs),
      tokensPerSecond: perSecond(numTokens - 1, generateMs),
    };
  }

  /** The bytes of a broken character and the text held back may still complete a stop string. */
  function finishText(): { emit: string; stopString: string | null } {
    const last: StopResult = stopMatcher.push(decoder.flush());
    const rest: StopResult = last.stopped ? { emit: '', stopped: true } : stopMatcher.flush();
    return { emit: last.emit + rest.emit, stopString: last.stopString ?? rest.stopString ?? null };
  }

  return {
    handle(event) {
      first ??= event;
      last = event;
      firstTokenMs ??= options.elapsedMs();
      if (event.type === 'finished') {
        const { emit, stopString } = finishText();
        const summary = summarize(stopString === null ? event.reason : 'stop', stopString);
        return { text: emit, tokenIds: [], logprobs: options.hasLogprobs ? [] : null, ...summary };
      }
      numTokens++;
      const { emit: text, stopped, stopString = null } = stopMatcher.push(decoder.push(event.token.tokenId));
      const content = {
        text,
        tokenIds: [event.token.tokenId],
        logprobs: options.hasLogprobs ? [event.token] : null,
      };
      return stopped ? { ...content, ...summarize('stop', stopString) } : { ...content, finishReason: null };
    },
  };
}

function perSecond(count: number, ms: number): number | null {
  return count > 0 && ms > 0 ? (count * 1000) / ms : null;
}
