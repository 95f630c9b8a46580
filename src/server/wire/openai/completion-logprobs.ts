import type { SampledToken } from '../../../sampling/types.ts';
import type { Tokenizer } from '../../../tokenizers/types.ts';
import { finite } from './logprobs.ts';

export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}

/** `choices[].logprobs` of a completion; `offset` is where the text of the first token begins. */
export function toCompletionLogprobs(
  tokens: readonly SampledToken[] | null,
  tokenizer: Tokenizer,
  offset: number,
): CompletionLogprobs | null {
  if (tokens === null) return null;
  const result: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
  let start = offset;
  for (const { tokenId, logprob, top } of tokens) {
    const text = textOf(tokenizer, tokenId);
    result.tokens.push(text);
    result.token_logprobs.push(finite(logprob ?? -Infinity));
    // No prototype: a token may be spelled `__proto__`.
    const others = Object.create(null) as Record<string, number>;
    for (const { tokenId, logprob } of top) others[textOf(tokenizer, tokenId)] = finite(logprob);
    result.top_logprobs.push(others);
    result.text_offset.push(start);
    start += text.length;
  }
  return result;
}

/** A token alone; bytes that are no whole character are spelled as OpenAI does. */
function textOf(tokenizer: Tokenizer, id: number): string {
  const bytes = tokenizer.tokenBytes(id);
  if (bytes.length === 0) return tokenizer.piece(id);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
  }
}
