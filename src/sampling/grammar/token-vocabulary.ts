import type { Tokenizer } from '../../tokenizers/index.ts';
import type { TokenVocabulary } from './types.ts';

/** The vocabulary data that grammars need. */
export function createTokenVocabulary(tokenizer: Tokenizer): TokenVocabulary {
  const endIds: number[] = [];
  for (let id = 0; id < tokenizer.vocabSize; id++) if (tokenizer.isEndOfGeneration(id)) endIds.push(id);
  const encoder = new TextEncoder();
  return {
    size: tokenizer.vocabSize,
    bytes: (id) => (tokenizer.isControl(id) ? encoder.encode(tokenizer.piece(id)) : tokenizer.tokenBytes(id)),
    isControl: (id) => tokenizer.isControl(id),
    endIds,
  };
}
