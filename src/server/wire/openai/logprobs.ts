import type { SampledToken, TokenLogprob } from '../../../sampling/types.ts';
import type { Tokenizer } from '../../../tokenizers/types.ts';

/** JSON has no infinities; OpenAI writes this for what is practically impossible. */
const LOWEST = -9999;

interface WireToken {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}

export interface ChatLogprobs {
  readonly content: readonly (WireToken & { readonly top_logprobs: readonly WireToken[] })[];
  readonly refusal: null;
}

/** `choices[].logprobs` of a chat; null where none were asked for. */
export function toChatLogprobs(tokens: readonly SampledToken[] | null, tokenizer: Tokenizer): ChatLogprobs | null {
  if (tokens === null) return null;
  const content = tokens.map(({ tokenId, logprob, top }) => ({
    ...toWireToken({ tokenId, logprob: logprob ?? LOWEST }, tokenizer),
    top_logprobs: top.map((other) => toWireToken(other, tokenizer)),
  }));
  return { content, refusal: null };
}

function toWireToken({ tokenId, logprob }: TokenLogprob, tokenizer: Tokenizer): WireToken {
  const bytes = tokenizer.tokenBytes(tokenId);
  // Tokens that are no text, such as the end of a turn, are shown as the vocabulary spells them.
  if (bytes.length === 0) return { token: tokenizer.piece(tokenId), logprob: finite(logprob), bytes: null };
  return { token: new TextDecoder().decode(bytes), logprob: finite(logprob), bytes: Array.from(bytes) };
}

export const finite = (logprob: number): number => Math.max(LOWEST, logprob);
