import type { TokenMatcher } from './grammar/index.ts';

/** With more tokens to choose from, the text is not forced but free. */
const MAX_CHOICES = 64;

/** Guesses the tokens of a text that a grammar leaves little choice in: keys, punctuation, literals. */
export interface ForcedTokens {
  /** Up to `maxTokens` tokens from the matcher's place on, until the text may branch. The matcher is not changed. */
  guess(matcher: TokenMatcher, maxTokens: number): number[];
  /** Learns how the text is spaced: after which character comes which space. */
  observe(matcher: TokenMatcher, tokenId: number): void;
}

export function createForcedTokens(): ForcedTokens {
  /** White space that followed a character the last time: models indent their JSON or do not, but consistently. */
  const spaces = new Map<number, string>();
  let lastByte = 0;

  return {
    guess(matcher, maxTokens) {
      const tokens: number[] = [];
      const place = matcher.clone();
      let before = lastByte;
      while (tokens.length < maxTokens) {
        const tokenId = onlyText(place, spaces.get(before) ?? '');
        // Nothing follows an end token, so there is nothing to gain from it.
        if (tokenId === null || !place.accept(tokenId) || place.isEnded) break;
        tokens.push(tokenId);
        before = place.bytesOf(tokenId).at(-1) ?? before;
      }
      return tokens;
    },
    observe(matcher, tokenId) {
      const bytes = matcher.bytesOf(tokenId);
      for (const [i, byte] of bytes.entries()) {
        if (isSpace(byte)) continue;
        const start = bytes.subarray(0, i);
        if (start.every(isSpace)) spaces.set(lastByte, String.fromCharCode(...start));
        break;
      }
      lastByte = bytes.findLast((byte) => !isSpace(byte)) ?? lastByte;
    },
  };
}

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** The longest allowed token if all others spell a part of it, apart from white space; null: there is a choice. */
function onlyText(matcher: TokenMatcher, space: string): number | null {
  const choices = choicesOf(matcher.mask());
  if (choices === null) return null;
  let bestId: number | null = null;
  let best = '';
  const texts: string[] = [];
  for (const id of choices) {
    const text = String.fromCharCode(...matcher.bytesOf(id));
    const isSpaced = text.length > 0 && isSpace(text.charCodeAt(0));
    // Of the spacings, only the usual one is guessed.
    if (isSpaced && (space === '' || !text.startsWith(space) || isSpace(text.charCodeAt(space.length)))) continue;
    texts.push(isSpaced ? text.slice(space.length) : text);
    if (isSpaced !== (space !== '') || text.length <= best.length) continue;
    best = text;
    bestId = id;
  }
  if (bestId === null) return null;
  const plain = best.slice(space.length);
  return texts.every((text) => plain.startsWith(text) || text.startsWith(plain)) ? bestId : null;
}

function choicesOf(mask: Uint32Array): number[] | null {
  const choices: number[] = [];
  for (let word = 0; word < mask.length; word++) {
    for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
      if (choices.length === MAX_CHOICES) return null;
      choices.push(word * 32 + 31 - Math.clz32(bits & -bits));
    }
  }
  return choices;
}
