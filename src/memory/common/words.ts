/** Say nothing about the subject of an English question. */
const FUNCTION_WORDS = new Set(
  'a an the of to in on at for by with from and or is are was were be been do does did has have had can could will would should shall may might must i me my mine you your we our us it its they them their he she his her this that these those what which who whom whose when where why how many much there tell give please'.split(
    ' ',
  ),
);

/** The words of a text, without possessive endings. */
export const wordsOf = (text: string): string[] => text.replace(/['’]s\b/g, '').match(/[\p{L}\p{N}]+/gu) ?? [];

/** The different words that carry the meaning, in lower case. */
export const contentWords = (text: string): readonly string[] =>
  [...new Set(wordsOf(text.toLowerCase()))].filter((word) => word.length > 1 && !FUNCTION_WORDS.has(word));

/** Capitalized words after the first one, and words with digits. */
export const namesOf = (text: string): readonly string[] =>
  wordsOf(text)
    .filter((word, i) => /\d/.test(word) || (i > 0 && word !== 'I' && /^\p{Lu}/u.test(word)))
    .map((word) => word.toLowerCase());
