import type { ChatMessage } from '../../chat/types.ts';
import type { TrainingExample } from '../../learning/lora-training/types.ts';
import type { Prompt } from '../prompt.ts';
import { doTextTask, preparePromptAside, type TextContext } from '../text/text-thread.ts';

/** Longer examples would need too much memory for training. */
export const MAX_EXAMPLE_TOKENS = 512;

export type ExamplePrompt = string | readonly ChatMessage[];

export interface ExampleContext extends TextContext {
  /** Ids that end an answer. */
  readonly endIds: readonly number[];
}

/** Encodes a prompt and its answer as a training example, with the token that ends it unless it is cut off; null: too long or empty. */
export function createExampleEncoder(context: ExampleContext, maxTokens: number) {
  const { tokenizer, endIds } = context;
  const endId = tokenizer.eosId !== null && endIds.includes(tokenizer.eosId) ? tokenizer.eosId : endIds[0];
  return async (
    prompt: ExamplePrompt,
    answer: string,
    { isCutOff = false }: { readonly isCutOff?: boolean } = {},
  ): Promise<Omit<TrainingExample, 'weight'> | null> => {
    const asked = await preparePromptAside(context, prompt as Prompt, { parseSpecial: false }, { signal: null });
    // Encoded like a generated answer: a leading space belongs to its first token.
    const isContinuation = !tokenizer.isControl(asked.ids.at(-1)!);
    const options = { parseSpecial: false, isContinuation };
    const { lists } = await doTextTask(context, { kind: 'continuation', text: answer, options }, { signal: null });
    const said = [...lists[0]!, ...(endId === undefined || isCutOff ? [] : [endId])];
    if (said.length === 0 || asked.ids.length + said.length > maxTokens) return null;
    return { tokenIds: [...asked.ids, ...said], numPromptTokens: asked.ids.length };
  };
}
