import type { SampledToken, Tokenizer } from '../../../runtime/lower-layers.ts';
import { finite } from './logprobs.ts';

export interface CompletionLogprobs {
  tokens: string[];
  /** Null: the first token of a prompt. */
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** Writes `choices[].logprobs` of an answer in pieces; null if not requested. */
export type CompletionLogprobsWriter = (
  tokens: readonly SampledToken[] | null,
  /** Whether the first token is that of a prompt, which has no log-probability. Default false. */
  hasPrompt?: boolean,
) => CompletionLogprobs | null;

/**
 * Offsets count from the start of the answer's text, so they depend neither on the spelling of tokens here nor on the
 * pieces.
 */
export function createCompletionLogprobs(tokenizer: Tokenizer): CompletionLogprobsWriter {
  const decoder = tokenizer.createStreamDecoder({ keepLeadingSpace: true });
  let start = 0;
  return (tokens, hasPrompt = false) => {
    if (tokens === null) return null;
    const result: CompletionLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    for (const { tokenId, logprob, top } of tokens) {
      result.tokens.push(textOf(tokenizer, tokenId));
      const isUnscored = hasPrompt && start === 0 && logprob === null;
      result.token_logprobs.push(isUnscored ? null : finite(logprob ?? -Infinity));
      // No prototype: a token may be spelled `__proto__`.
      const others = Object.create(null) as Record<string, number>;
      for (const { tokenId, logprob } of top) others[textOf(tokenizer, tokenId)] = finite(logprob);
      result.top_logprobs.push(isUnscored ? null : others);
      result.text_offset.push(start);
      start += decoder.push(tokenId).length;
    }
    return result;
  };
}

/** The text of a token; incomplete characters in OpenAI's notation. */
function textOf(tokenizer: Tokenizer, id: number): string {
  const bytes = tokenizer.tokenBytes(id);
  if (bytes.length === 0) return tokenizer.piece(id);
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
  }
}
