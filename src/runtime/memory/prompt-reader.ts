import type { Tokenizer } from '../../tokenizers/types.ts';
import type { Prompt } from '../prompt.ts';
import { imagesOf, withoutImageData } from '../prompt-images.ts';
import type { PromptReader } from './types.ts';

export interface PromptReaderContext {
  readonly tokenizer: Pick<Tokenizer, 'encode'>;
  readonly maxContext: number;
  /** Tokens of the answer; null: as many as the context has left, of which it needs some. */
  readonly maxTokens: number | null;
  /** Tokens that are in the context before the prompt. Default 0. */
  readonly numHistoryTokens?: number;
  encodePrompt(prompt: Prompt): Promise<readonly number[]>;
}

/** Of the context, for an answer without a limit. */
const ANSWER_SHARE = 1 / 4;
/** No tokenizer makes more tokens of a character than its bytes. */
const MAX_TOKENS_PER_CHAR = 4;

/** Counts the tokens of prompts for recall. */
export function createPromptReader(context: PromptReaderContext): PromptReader {
  const { tokenizer, maxContext, maxTokens, numHistoryTokens = 0, encodePrompt } = context;
  const numFree = maxContext - numHistoryTokens - (maxTokens ?? Math.floor(maxContext * ANSWER_SHARE));
  return {
    countTokens: (text) => tokenizer.encode(text).length,
    async excessTokens(prompt) {
      // The roles and marks of a chat template have fewer characters than the JSON of the messages has.
      const length =
        typeof prompt === 'string' ? prompt.length : JSON.stringify(withoutImageData<unknown>(prompt)).length;
      if (length * MAX_TOKENS_PER_CHAR <= numFree && imagesOf(prompt).length === 0) return 0;
      // A prompt that cannot be read fails where it is answered.
      const numTokens = await encodePrompt(prompt).then((ids) => ids.length, () => 0); // prettier-ignore
      return Math.max(0, numTokens - numFree);
    },
  };
}
