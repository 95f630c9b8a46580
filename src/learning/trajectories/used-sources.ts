/** An answer and the texts that it may have used. */
export interface SourceUse {
  readonly answer: string;
  /** The prompt without the texts: its words say nothing about their use. */
  readonly asked: string;
  /** In the order of their numbers, from 1. */
  readonly texts: readonly string[];
}

/** Words of a gram: three are rarely shared by chance. */
const GRAM = 3;
/** Grams that an answer must have of its own before a missing overlap means disuse. */
const MIN_OWN = 4;
/** Shared grams that only one text has: five consecutive words, or several places. */
const MIN_SHARED = 3;
/** Least share of the answer's own grams. */
const MIN_SHARE = 0.1;
/** Shared grams up to here are chance; between this and use the answer is unclear. */
const MAX_CHANCE = 1;
/** Words of a text that are read. */
const MAX_WORDS = 4000;

/** In scripts without spaces each letter counts as a word. */
const WORD =
  /[\p{Ideographic}\p{Script=Hiragana}\p{Script=Katakana}]|[^\P{L}\p{Ideographic}\p{Script=Hiragana}\p{Script=Katakana}]+|\p{N}+/gu;
/** Excludes array indices in code. */
const CITATIONS = /(?<![\p{L}\p{N}_)\]])(?:\[\d{1,2}\])+/gu;

/**
 * Whether each text was used: the answer cites its number, or shares grams with it that no other text and no question has. Null if that is
 * unclear: the answer has too few grams of its own, or shares them with several texts.
 */
export function usedSources({ answer, asked, texts }: SourceUse): (boolean | null)[] {
  const cited = citedNumbers(answer, asked);
  const askedGrams = gramsOf(asked);
  const own = [...gramsOf(answer)].filter((gram) => !askedGrams.has(gram));
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

/** Empty if the question has numbers in brackets, which may mean anything. */
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
