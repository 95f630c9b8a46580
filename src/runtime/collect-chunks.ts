import type { ToolCall } from '../chat/types.ts';
import type { GenerateChunk, GenerateResult } from './generation-types.ts';

/** The whole answer of a stream. */
export async function collectChunks(chunks: AsyncIterable<GenerateChunk>): Promise<GenerateResult> {
  let text = '';
  let reasoning = '';
  const toolCalls: ToolCall[] = [];
  const tokenIds: number[] = [];
  const logprobs: NonNullable<GenerateChunk['logprobs']>[number][] = [];
  for await (const chunk of chunks) {
    text += chunk.text;
    reasoning += chunk.reasoning;
    for (const { index, id, name, arguments: more } of chunk.toolCalls) {
      (toolCalls[index] ??= { id, name, arguments: '' }).arguments += more;
    }
    tokenIds.push(...chunk.tokenIds);
    logprobs.push(...(chunk.logprobs ?? []));
    if (chunk.finishReason === null) continue;
    const { finishReason, usage, timings, seed, stopString, meanLogprob } = chunk;
    const hasLogprobs = chunk.logprobs !== null;
    return {
      text,
      reasoning,
      toolCalls,
      tokenIds,
      finishReason,
      usage,
      timings,
      logprobs: hasLogprobs ? logprobs : null,
      seed,
      stopString,
      ...(meanLogprob === undefined ? {} : { meanLogprob }),
      ...(chunk.promptLogprobs === undefined ? {} : { promptLogprobs: chunk.promptLogprobs }),
      ...(chunk.memory === undefined ? {} : { memory: chunk.memory }),
      ...(chunk.reflection === undefined ? {} : { reflection: chunk.reflection }),
    };
  }
  throw new Error('unreachable: a generation ends with a finish reason or an error');
}
