import type { AnswerChunk, LastChunk } from '../../src/runtime/requests/answer-chunks.ts';

const EMPTY = {
  choice: 0,
  text: '',
  reasoning: '',
  toolCalls: [],
  tokenIds: [],
  logprobs: null,
  textLogprobs: null,
  finishReason: null,
};

/** A piece of an answer; what is not given is empty. */
export const pieceOf = (more: Partial<AnswerChunk>): AnswerChunk => ({ ...EMPTY, ...more }) as AnswerChunk;

export const USAGE = {
  promptTokens: 10,
  cachedTokens: 4,
  completionTokens: 5,
  totalTokens: 15,
  reasoningTokens: 2,
  acceptedDraftTokens: 0,
  rejectedDraftTokens: 0,
};

/** The last piece of an answer: 10 prompt tokens of which 4 were cached, 5 tokens of answer. */
export const endOf = (more: Partial<LastChunk> = {}): AnswerChunk & LastChunk => ({
  ...EMPTY,
  finishReason: 'stop',
  usage: USAGE,
  timings: {
    firstTokenMs: 30,
    queuedMs: 0,
    promptMs: 30,
    generateMs: 20,
    promptTokensPerSecond: 200,
    tokensPerSecond: 250,
  },
  seed: 7,
  stopString: null,
  ...more,
});

/** A stream of the pieces. */
export async function* streamOf<T>(pieces: readonly T[]): AsyncGenerator<T, void, undefined> {
  yield* pieces;
}

export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of stream) all.push(one);
  return all;
}
