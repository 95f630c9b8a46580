import { collectChunks } from '../runtime/collect-chunks.ts';
import type { GenerateChunk, GenerateResult } from '../runtime/generation-types.ts';

/** Collects an answer, passing each piece of text to `onText`; a blank line separates reasoning from the answer. */
export async function collectAnswer(
  chunks: AsyncIterable<GenerateChunk>,
  onText: (piece: string) => void,
): Promise<GenerateResult> {
  let isThinking = false;
  return collectChunks(show());
  async function* show(): AsyncGenerator<GenerateChunk, void, undefined> {
    for await (const chunk of chunks) {
      if (chunk.reasoning !== '') onText(chunk.reasoning);
      isThinking ||= chunk.reasoning !== '';
      const isAnswer = chunk.text !== '';
      onText(isThinking && isAnswer ? `\n\n${chunk.text}` : chunk.text);
      if (isAnswer) isThinking = false;
      yield chunk;
    }
  }
}
