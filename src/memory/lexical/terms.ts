/** Longer words are keys and encoded data; their beginning is enough. */
const MAX_TERM_CHARS = 64;

const WORD = /[\p{L}\p{N}\p{M}]+(?:['’][\p{L}\p{M}]+)*/gu;
const ASCII = /^[\0-\x7f]*$/;
/** Accents of European scripts; marks of other scripts carry meaning. */
const ACCENTS = /[\u0300-\u036f]/g;
/** Scripts that do not separate words. */
const UNSEGMENTED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const UNSEGMENTED_RUN =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{M}ー]+|[^\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}\p{M}ー]+/gu;
/** As in `maxTokens` and "GitHub". */
const INNER_CAPITAL = /(?<=[a-z\d])(?=[A-Z])/;
const POSSESSIVE = /['’]s$/;
const APOSTROPHE = /['’]/g;

/**
 * The terms of a text in order: words in lower case without accents, identifiers also by their parts, and pairs of characters in
 * scripts without word separators (as in Lucene; `Intl.Segmenter` cuts a word differently in another context).
 */
export function termsOf(text: string): string[] {
  const terms: string[] = [];
  const plain = ASCII.test(text) ? text : text.normalize('NFKD').replace(ACCENTS, '').normalize('NFC');
  for (const word of plain.match(WORD) ?? []) {
    if (UNSEGMENTED.test(word)) addPairs(terms, word);
    else addWord(terms, word);
  }
  return terms;
}

function addWord(terms: string[], word: string): void {
  const lower = word.toLowerCase();
  const term = stem(lower.replace(POSSESSIVE, '').replace(APOSTROPHE, ''));
  terms.push(term.slice(0, MAX_TERM_CHARS));
  if (lower !== word && INNER_CAPITAL.test(word)) for (const part of word.split(INNER_CAPITAL)) addWord(terms, part);
}

function addPairs(terms: string[], word: string): void {
  for (const run of word.match(UNSEGMENTED_RUN) ?? []) {
    if (!UNSEGMENTED.test(run)) {
      addWord(terms, run);
      continue;
    }
    const characters = Array.from(run);
    if (characters.length === 1) terms.push(run);
    for (let i = 1; i < characters.length; i++) terms.push(characters[i - 1]! + characters[i]!);
  }
}

/** Joins singular and plural ("libraries", "boxes", "dogs"), as Harman's S-stemmer does; its rule for "es" is the one for "s". */
function stem(word: string): string {
  if (word.length < 4 || !word.endsWith('s')) return word;
  if (word.endsWith('ies') && !word.endsWith('eies') && !word.endsWith('aies')) return `${word.slice(0, -3)}y`;
  if (/(?:x|z|ch|sh|ss)es$/.test(word)) return word.slice(0, -2);
  return /(?:us|ss)$/.test(word) ? word : word.slice(0, -1);
}
