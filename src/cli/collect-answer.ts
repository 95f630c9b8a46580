import { RuvLLMError } from '../core/errors.ts';
import type { GenerateChunk, GenerateResult } from '../runtime/generation-types.ts';
import type { SampledToken } from '../sampling/types.ts';

/** Reads an answer to its end, showing each piece of text as it comes. */
export async function collectAnswer(
  chunks: AsyncIterable<GenerateChunk>,
  onText: (piece: string) => void,
): Promise<GenerateResult> {
  let text = '';
  const tokenIds: number[] = [];
  const logprobs: SampledToken[] = [];
  for await (const chunk of chunks) {
    text += chunk.text;
    tokenIds.push(...chunk.tokenIds);
    logprobs.push(...(chunk.logprobs ?? []));
    onText(chunk.text);
    if (chunk.finishReason === null) continue;
    const { finishReason, stopString, seed, usage, timings } = chunk;
    const all = chunk.logprobs === null ? null : logprobs;
    return { text, tokenIds, finishReason, stopString, seed, usage, timings, logprobs: all };
  }
  throw new RuvLLMError('internal', 'the answer ended without saying why');
}
