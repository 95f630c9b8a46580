/** Of which texts an answer made use. */
export interface SourceUse {
  readonly answer: string;
  /** What the model was told beside the texts: what stands there can be said without them. */
  readonly asked: string;
  /** As they were numbered, from 1. */
  readonly texts: readonly string[];
}

/** Words in a row that are hardly said by chance. */
const GRAM = 3;
/** Rows of words of its own that an answer must have before their absence says anything. */
const MIN_OWN = 4;
/** Rows that only one text has: five words on end, or more than one place. */
const MIN_SHARED = 3;
/** And so much of what the answer says. */
const MIN_SHARE = 0.1;
/** More is too much for chance, and too little for use. */
const MAX_CHANCE = 1;
/** Of one text; more says no more, and takes time. */
const MAX_WORDS = 4000;

/** Scripts that put no space between words: each letter is one. */
const WORD =
  /[\p{Ideographic}\p{Script=Hiragana}\p{Script=Katakana}]|[^\P{L}\p{Ideographic}\p{Script=Hiragana}\p{Script=Katakana}]+|\p{N}+/gu;
/** Not the index of a list in code. */
const CITATIONS = /(?<![\p{L}\p{N}_)\]])(?:\[\d{1,2}\])+/gu;

/**
 * Whether each text was used: the answer refers to it by number, or says rows of three words that stand in this text, in no other and not
 * in what was asked. Null where it cannot be told: the answer has too little of its own, or says what several of the texts say.
 */
export function usedSources({ answer, asked, texts }: SourceUse): (boolean | null)[] {
  const cited = citedNumbers(answer, asked);
  const known = gramsOf(asked);
  const own = [...gramsOf(answer)].filter((gram) => !known.has(gram));
  const grams = texts.map(gramsOf);
  const numTexts = new Map(own.map((gram) => [gram, grams.filter((some) => some.has(gram)).length]));
  const isMute = own.length < MIN_OWN && !texts.some((_, i) => cited.has(i + 1));
  return grams.map((some, i) => {
    if (cited.has(i + 1)) return true;
    if (isMute || some.size === 0) return null;
    const shared = own.filter((gram) => some.has(gram));
    const alone = shared.filter((gram) => numTexts.get(gram) === 1).length;
    if (alone >= MIN_SHARED && alone >= MIN_SHARE * own.length) return true;
    return shared.length <= MAX_CHANCE ? false : null;
  });
}

/** None where numbers in brackets were in what was asked: then they may mean anything. */
function citedNumbers(answer: string, asked: string): ReadonlySet<number> {
  if (/\[\d{1,2}\]/.test(asked)) return new Set();
  return new Set(answer.match(CITATIONS)?.flatMap((some) => some.match(/\d+/g)!.map(Number)));
}

function gramsOf(text: string): Set<string> {
  const words: string[] = [];
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    if (words.push(word) === MAX_WORDS) break;
  }
  const grams = new Set<string>();
  for (let i = 0; i + GRAM <= words.length; i++) grams.add(words.slice(i, i + GRAM).join(' '));
  return grams;
}
