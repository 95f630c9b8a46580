import type { Metadata } from './types.ts';

const TOKENS = 'tokenizer.ggml.tokens';

/** Why two files do not have the same tokens under the same ids; null: they do. */
export function vocabularyDifference(first: Metadata, second: Metadata): string | null {
  const [own, other] = [first.strings(TOKENS, []), second.strings(TOKENS, [])];
  if (own.length === 0 || other.length === 0) return 'one of the files has no vocabulary';
  if (own.length !== other.length) return `its vocabulary has ${other.length} tokens, that of the model ${own.length}`;
  const at = own.findIndex((token, id) => token !== other[id]);
  return at < 0 ? null : `token ${at} is ${JSON.stringify(other[at])}, in the model ${JSON.stringify(own[at])}`;
}
