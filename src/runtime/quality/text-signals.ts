import { wordsOf } from '../../memory/common/words.ts';

/** How a text repeats itself; each from 0 to 1. */
export interface TextSignals {
  readonly numWords: number;
  /** 1: no run of four words occurs twice, and the text does not end in a loop. */
  readonly repetition: number;
  /** Different words per word, over windows of 50 words: long texts are not punished for their length. */
  readonly diversity: number;
}

const RUN_WORDS = 4;
const WINDOW = 50;
/** The longest phrase that a loop at the end is searched for. */
const MAX_PERIOD = 24;
/** Fewer repetitions are emphasis ("no, no"), not a loop. */
const MIN_REPEATS = 3;
/** Longer texts are judged by their beginning and end: the scan must stay below a millisecond. */
const MAX_WORDS = 2000;

const clip = (words: readonly string[]): readonly string[] =>
  words.length <= MAX_WORDS ? words : [...words.slice(0, MAX_WORDS / 2), ...words.slice(-MAX_WORDS / 2)];

/** Share of the runs of four words that occurred before. */
function repeatedShare(words: readonly string[]): number {
  const numRuns = words.length - RUN_WORDS + 1;
  if (numRuns < 2) return 0;
  const seen = new Set<string>();
  for (let i = 0; i < numRuns; i++) seen.add(words.slice(i, i + RUN_WORDS).join(' '));
  return 1 - seen.size / numRuns;
}

/** Share of the text that is one phrase said three times or more, up to its last word. */
function loopShare(words: readonly string[]): number {
  let longest = 0;
  for (let period = 1; period <= Math.min(MAX_PERIOD, words.length / MIN_REPEATS); period++) {
    let length = period;
    while (length < words.length && words[words.length - 1 - length] === words[words.length - 1 - length + period])
      length++;
    if (length >= period * MIN_REPEATS) longest = Math.max(longest, length);
  }
  return words.length === 0 ? 0 : longest / words.length;
}

function windowedDiversity(words: readonly string[]): number {
  if (words.length === 0) return 0;
  let [sum, count] = [0, 0];
  for (let from = 0; from === 0 || from + WINDOW <= words.length; from += WINDOW / 2) {
    const part = words.slice(from, from + WINDOW);
    sum += new Set(part).size / part.length;
    count++;
  }
  return sum / count;
}

/** Signals of the words alone. Scripts without spaces are read by character, or a Chinese answer would be one word. */
export function textSignals(text: string): TextSignals {
  const found = wordsOf(text.toLowerCase()).flatMap((word) =>
    /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+$/u.test(word) ? [...word] : [word],
  );
  const words = clip(found);
  return {
    numWords: found.length,
    repetition: 1 - Math.max(repeatedShare(words), loopShare(words)),
    diversity: windowedDiversity(words),
  };
}
