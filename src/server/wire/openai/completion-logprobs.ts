import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { finite } from './logprobs.ts';

export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}

/** Writes `choices[].logprobs` of one answer, piece by piece; null where none were asked for. */
export type CompletionLogprobsWriter = (tokens: readonly SampledToken[] | null) => CompletionLogprobs | null;

/**
 * Offsets are those of the answer's own text, from its beginning on: how a token is spelled here says nothing about its
 * length there, and how the answer was cut into pieces neither.
 */
export function createCompletionLogprobs(tokenizer: Tokenizer): CompletionLogprobsWriter {
  const decoder = tokenizer.createStreamDecoder({ keepLeadingSpace: true });
  let start = 0;
  return (tokens) => {
    if (tokens === null) return null;
    const result: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const { tokenId, logprob, top } of tokens) {
      result.tokens.push(textOf(tokenizer, tokenId));
      result.token_logprobs.push(finite(logprob ?? -Infinity));
      // No prototype: a token may be spelled `__proto__`.
      const others = Object.create(null) as Record<string, number>;
      for (const { tokenId, logprob } of top) others[textOf(tokenizer, tokenId)] = finite(logprob);
      result.top_logprobs.push(others);
      result.text_offset.push(start);
      start += decoder.push(tokenId).length;
    }
    return result;
  };
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
