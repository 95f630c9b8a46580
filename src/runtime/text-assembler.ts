import type { FinishedEvent, TokenEvent } from '../engine/types.ts';
import type { SampledToken } from '../sampling/types.ts';
import type { AnswerPiece, AnswerReader, AnswerStep } from './answers/answer-reader.ts';
import { createVisibleTokens } from './answers/visible-tokens.ts';
import type { GenerateChunk, GenerateSummary, Timings, TokenProgress } from './generation-types.ts';

export interface AssemblerOptions {
  readonly reader: AnswerReader;
  readonly numPromptTokens: number;
  readonly seed: number;
  readonly hasLogprobs: boolean;
  /** Bytes that a token spells; null: every token is part of the visible text. */
  readonly sizeOf: ((tokenId: number) => number) | null;
  /** Milliseconds from the call to now. */
  readonly elapsedMs: () => number;
  readonly onToken: ((progress: TokenProgress) => void) | null;
}

/** Turns the tokens of one sequence into chunks; only the last chunk has a finish reason. */
export interface TextAssembler {
  /** One chunk, or several if a token adds to more than one part. */
  handle(event: TokenEvent | FinishedEvent): readonly GenerateChunk[];
}

export function createTextAssembler(options: AssemblerOptions): TextAssembler {
  const { reader, hasLogprobs } = options;
  const visible = createVisibleTokens(options.sizeOf);
  let numTokens = 0;
  /** Null: the sampler did not compute all of them. */
  let sumLogprobs: number | null = 0;
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
      acceptedDraftTokens: last!.acceptedDraftTokens,
      rejectedDraftTokens: last!.rejectedDraftTokens,
    };
    const likelihood = sumLogprobs === null || numTokens === 0 ? {} : { meanLogprob: sumLogprobs / numTokens };
    return { finishReason, usage, timings: measure(), seed, stopString, ...likelihood };
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

  /** The tokens of a piece's text; text that was held back brings its tokens later. */
  function textTokens({ text, reasoning, toolCalls }: AnswerPiece, isLast: boolean): readonly SampledToken[] {
    if (text === '' && (reasoning !== '' || toolCalls.length > 0)) visible.drop();
    return isLast ? visible.takeRest() : text === '' ? [] : visible.take(text);
  }

  /** The first piece has the token, the last one the summary. */
  function toChunks(
    { pieces }: AnswerStep,
    token: TokenEvent | null,
    summary: GenerateSummary | null,
  ): GenerateChunk[] {
    return pieces.map((piece, index): GenerateChunk => {
      const tokens = index === 0 && token !== null ? [token.token] : [];
      const isLast = summary !== null && index === pieces.length - 1;
      if (hasLogprobs) tokens.forEach(visible.add);
      const content = {
        ...piece,
        tokenIds: tokens.map(({ tokenId }) => tokenId),
        logprobs: hasLogprobs ? tokens : null,
        textLogprobs: hasLogprobs ? textTokens(piece, isLast) : null,
      };
      return isLast ? { ...content, ...summary } : { ...content, finishReason: null };
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
      const { logprob } = event.token;
      sumLogprobs = sumLogprobs === null || logprob === null ? null : sumLogprobs + logprob;
      options.onToken?.({
        elapsedMs: firstTokenMs + event.elapsedMs - first.elapsedMs,
        queuedMs: first.queuedMs,
        promptTokens: options.numPromptTokens,
        cachedTokens: first.cachedTokens,
        ...(event.promptBlocks === undefined ? {} : { promptBlocks: event.promptBlocks }),
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
