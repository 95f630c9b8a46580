import type { ChatMessage } from '../../chat/types.ts';
import type { GenerateOptions } from '../../runtime/generate-options.ts';
import type { GenerateChunk, Usage } from '../../runtime/generation-types.ts';
import type { Model } from '../../runtime/model.ts';
import { addUsages } from '../../runtime/tools/run-tools.ts';
import type { CliTools } from './open-cli-tools.ts';

/**
 * One answer, with the tool calls that lead to it, as the pieces of one generation: the last piece has the usage of all rounds.
 * `onTurns` gets the turns to keep.
 */
export async function* generateWithTools(
  model: Pick<Model, 'runToolsStream'>,
  messages: readonly ChatMessage[],
  options: GenerateOptions,
  tools: CliTools,
  onTurns: (turns: readonly ChatMessage[]) => void,
): AsyncGenerator<GenerateChunk, void, undefined> {
  const usages: Usage[] = [];
  /** The last piece of a round, until it is known whether another one follows. */
  let last: GenerateChunk | null = null;
  const approve = (request: Parameters<CliTools['approve']>[0]): Promise<boolean> => tools.approve(request);
  // Each round has a longer prompt: the limit that fits the first one may not fit the last.
  const all = { ...options, clampMaxTokens: true, messages, tools: tools.tools, approve };
  for await (const event of model.runToolsStream(all)) {
    tools.onEvent(event);
    if (event.type === 'answer') {
      onTurns(event.turns);
      if (last !== null && last.finishReason !== null) yield { ...last, toolCalls: [], usage: addUsages(usages) };
      return;
    }
    if (last !== null) {
      const { text, reasoning, tokenIds, logprobs, textLogprobs } = last;
      yield { text: `${text}\n`, reasoning, toolCalls: [], tokenIds, logprobs, textLogprobs, finishReason: null };
      last = null;
    }
    if (event.type !== 'chunk') continue;
    if (event.chunk.finishReason === null) yield { ...event.chunk, toolCalls: [] };
    else {
      usages.push(event.chunk.usage);
      last = event.chunk;
    }
  }
}
