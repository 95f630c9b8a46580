import type { SampledToken, TokenLogprob, Tokenizer } from '../../../runtime/lower-layers.ts';

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

type Spelling = Pick<WireToken, 'token' | 'bytes'>;

/** One for all: twenty others a token are tens of thousands in a long answer. A mark of byte order is text like any other. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** `choices[].logprobs` of a chat; null where none were asked for. */
export function toChatLogprobs(tokens: readonly SampledToken[] | null, tokenizer: Tokenizer): ChatLogprobs | null {
  if (tokens === null) return null;
  // The same few tokens come again and again among the others.
  const known = new Map<number, Spelling>();
  const toWireToken = ({ tokenId, logprob }: TokenLogprob): WireToken => {
    const spelling = known.get(tokenId) ?? spell(tokenId, tokenizer);
    known.set(tokenId, spelling);
    return { token: spelling.token, logprob: finite(logprob), bytes: spelling.bytes };
  };
  const content = tokens.map(({ tokenId, logprob, top }) => ({
    ...toWireToken({ tokenId, logprob: logprob ?? LOWEST }),
    top_logprobs: top.map(toWireToken),
  }));
  return { content, refusal: null };
}

function spell(tokenId: number, tokenizer: Tokenizer): Spelling {
  const bytes = tokenizer.tokenBytes(tokenId);
  // Tokens that are no text, such as the end of a turn, are shown as the vocabulary spells them.
  if (bytes.length === 0) return { token: tokenizer.piece(tokenId), bytes: null };
  return { token: decoder.decode(bytes), bytes: Array.from(bytes) };
}

export const finite = (logprob: number): number => Math.max(LOWEST, logprob);
