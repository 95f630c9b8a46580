import type { SampledToken, TokenLogprob, Tokenizer } from '../../../runtime/lower-layers.ts';

/** OpenAI's value for -Infinity, which JSON cannot express. */
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

type Spelling = Pick<WireToken, 'token' | 'bytes'>;

/** Shared, because a long answer has tens of thousands of alternatives. A byte order mark is ordinary text. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `choices[].logprobs` of a chat; null if not requested. */
export function toChatLogprobs(tokens: readonly SampledToken[] | null, tokenizer: Tokenizer): ChatLogprobs | null {
  if (tokens === null) return null;
  // The same few tokens recur among the alternatives.
  const spellings = new Map<number, Spelling>();
  const toWireToken = ({ tokenId, logprob }: TokenLogprob): WireToken => {
    const spelling = spellings.get(tokenId) ?? spellToken(tokenId, tokenizer);
    spellings.set(tokenId, spelling);
    return { token: spelling.token, logprob: finite(logprob), bytes: spelling.bytes };
  };
  const content = tokens.map(({ tokenId, logprob, top }) => ({
    ...toWireToken({ tokenId, logprob: logprob ?? LOWEST }),
    top_logprobs: top.map(toWireToken),
  }));
  return { content, refusal: null };
}

export function spellToken(tokenId: number, tokenizer: Tokenizer): Spelling {
  const bytes = tokenizer.tokenBytes(tokenId);
  // Control tokens are shown as in the vocabulary.
  if (bytes.length === 0) return { token: tokenizer.piece(tokenId), bytes: null };
  return { token: decoder.decode(bytes), bytes: Array.from(bytes) };
}

export const finite = (logprob: number): number => Math.max(LOWEST, logprob);
