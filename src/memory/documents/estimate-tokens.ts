const CHARS_PER_TOKEN = 5;
/** Scripts that tokenizers split into single characters begin here: the code points of Hangul Jamo and all after them, and Thai. */
const FIRST_DENSE = 0x1100;
const [THAI_START, THAI_END] = [0x0e00, 0x0e7f];

const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13) || code === 0xa0;
/** ASCII letters and digits, and all other characters above ASCII: their punctuation is rare. */
const isWord = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code > 0xa0;
const isDense = (code: number): boolean => code >= FIRST_DENSE || (code >= THAI_START && code <= THAI_END);

/**
 * Tokens of a text, without a model: chunks must not depend on the model that is loaded, or they would change with it. A word
 * has one token per five letters; every other sign is a token.
 */
export function estimateTokens(text: string, start = 0, end = text.length): number {
  let numTokens = 0;
  let length = 0;
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i);
    if (isWord(code) && !isDense(code)) {
      if (length++ % CHARS_PER_TOKEN === 0) numTokens++;
      continue;
    }
    length = 0;
    if (!isSpace(code)) numTokens++;
  }
  return numTokens;
}
