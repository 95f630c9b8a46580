import type { FinishedEvent, TokenEvent } from '../engine/types.ts';
import type { AnswerReader, AnswerStep } from './answers/answer-reader.ts';
import type { GenerateChunk, GenerateSummary, Timings, TokenProgress } from './generation-types.ts';

export interface AssemblerOptions {
  readonly reader: AnswerReader;
  readonly numPromptTokens: number;
  readonly seed: number;
  readonly hasLogprobs: boolean;
  /** Milliseconds from the call to now. */
  readonly elapsedMs: () => number;
  /** Called for each token. */
  readonly onToken: ((progress: TokenProgress) => void) | null;
}

/** Turns the tokens of one sequence into chunks; only the last chunk has a finish reason. */
export interface TextAssembler {
  /** One chunk, or several if a token adds to more than one part. */
  handle(event: TokenEvent | FinishedEvent): readonly GenerateChunk[];
}

export function createTextAssembler(options: AssemblerOptions): TextAssembler {
  const { reader, hasLogprobs } = options;
  let numTokens = 0;
  let firstTokenMs: number | null = null;
  let first: TokenEvent | FinishedEvent | null = null;
  let last: TokenEvent | FinishedEvent | null = null;

  function summarize(reason: 'stop' | 'length', stopString: string | null): GenerateSummary {
    const finishReason = reason === 'stop' && reader.numCalls > 0 ? 'tool_calls' : reason;
    const { numPromptTokens, seed } = options;
    const usage = {
      promptTokens: numPromptTokens,
      cachedTokens: first!.cachedTokens,
      completionTokens: numTokens,
      totalTokens: numPromptTokens + numTokens,
      reasoningTokens: reader.numReasoningTokens,
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

  /** The first piece has the token, the last one the summary. */
  function toChunks(
    { pieces }: AnswerStep,
    token: TokenEvent | null,
    summary: GenerateSummary | null,
  ): GenerateChunk[] {
    return pieces.map((piece, index): GenerateChunk => {
      const own = index === 0 && token !== null ? token.token : null;
      const content = {
        ...piece,
        tokenIds: own === null ? [] : [own.tokenId],
        logprobs: hasLogprobs ? (own === null ? [] : [own]) : null,
      };
      const isLast = index === pieces.length - 1;
      return summary !== null && isLast ? { ...content, ...summary } : { ...content, finishReason: null };
    });
  }

  return {
    handle(event) {
      first ??= event;
      last = event;
      firstTokenMs ??= options.elapsedMs();
      if (event.type === 'finished') {
        const step = reader.finish();
        return toChunks(step, null, summarize(reasonOf(step) ?? event.reason, step.stopString));
      }
      numTokens++;
      options.onToken?.({
        elapsedMs: firstTokenMs + event.elapsedMs - first.elapsedMs,
        queuedMs: first.queuedMs,
        promptTokens: options.numPromptTokens,
        cachedTokens: first.cachedTokens,
      });
      const step = reader.push(event.token.tokenId);
      const reason = reasonOf(step);
      return toChunks(step, event, reason === null ? null : summarize(reason, step.stopString));
    },
  };
}

function reasonOf({ isStopped, isCut }: AnswerStep): 'stop' | 'length' | null {
  return isCut ? 'length' : isStopped ? 'stop' : null;
}

function perSecond(count: number, ms: number): number | null {
  return count > 0 && ms > 0 ? (count * 1000) / ms : null;
}
