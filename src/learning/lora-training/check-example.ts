import { RuvLLMError } from '../../core/errors.ts';
import type { TrainingExample } from './types.ts';

/** Checks an example before anything is computed: offsets depend on its numbers. */
export function checkExample(
  { tokenIds, numPromptTokens, weight = 1 }: TrainingExample,
  { maxTokens, vocabSize }: { maxTokens: number; vocabSize: number },
): void {
  const numTokens = tokenIds.length;
  if (numTokens > maxTokens) {
    throw new RuvLLMError('context_overflow', `an example of ${numTokens} tokens, limit ${maxTokens}`, {
      data: { numTokens, maxTokens },
    });
  }
  if (!Number.isInteger(numPromptTokens) || numPromptTokens < 1 || numPromptTokens >= numTokens) {
    throw new RuvLLMError(
      'invalid_option',
      `an example with a prompt of ${numPromptTokens} of its ${numTokens} tokens: from 1 to one less than all`,
      { data: { option: 'numPromptTokens', numPromptTokens, numTokens } },
    );
  }
  if (!(weight >= -1 && weight <= 1)) {
    throw new RuvLLMError('invalid_option', `an example of weight ${weight}: from -1 to 1`, {
      data: { option: 'weight' },
    });
  }
  for (let i = 0; i < numTokens; i++) {
    const id = tokenIds[i]!;
    if (Number.isInteger(id) && id >= 0 && id < vocabSize) continue;
    throw new RuvLLMError('invalid_token', `token ${id} is not in a vocabulary of ${vocabSize}`, {
      data: { token: id, vocabSize },
    });
  }
}
