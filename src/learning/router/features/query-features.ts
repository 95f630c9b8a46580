import { NUM_QUERY_FEATURES } from '../types.ts';
import { wordsOf } from './hashed-terms.ts';

// English, as the word lists of a router must be of some language; other languages keep the features of form.
const list = (words: string): ReadonlySet<string> => new Set(words.split(' '));
const FUNCTION_WORDS = list(
  'the of to and a in is that for it as was with be by on are this which or from at an his her he she they their has had have would will can could should may might must if then than when who what where why how did does do its been but not no all most each other some such',
);
const NEGATIONS = list('not except never least false incorrect no none without cannot unlikely neither nor');
const ITEM = /^\s*(?:[A-Ha-h]|\d{1,2})[.)]\s+/;

/** The text before a list of choices, and the choices. */
export function splitChoices(text: string): { stem: string; choices: string[] } {
  const stem: string[] = [];
  const choices: string[] = [];
  for (const line of text.split('\n')) {
    if (ITEM.test(line)) choices.push(line.replace(ITEM, ''));
    else if (choices.length === 0) stem.push(line);
    else if (!/^\s*answer:?\s*$/i.test(line)) choices[choices.length - 1] += ` ${line}`;
  }
  return { stem: stem.join('\n'), choices: choices.slice(0, 16) };
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values: readonly number[]): number => {
  const middle = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)));
};
const share = (words: readonly string[], is: (word: string) => boolean): number => mean(words.map((word) => +is(word)));

function overlap(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let both = 0;
  for (const word of a) if (b.has(word)) both += 1;
  return both / Math.max(1, a.size + b.size - both);
}

/** How alike choices are, and how much of them the stem has already: near misses are what makes a choice hard. */
function choiceFeatures(choices: readonly string[], stemWords: readonly string[]): number[] {
  const sets = choices.map((choice) => new Set(wordsOf(choice)));
  const pairs = sets.flatMap((a, i) => sets.slice(i + 1).map((b) => overlap(a, b)));
  const stem = new Set(stemWords);
  const inStem = sets.map((words) => [...words].filter((word) => stem.has(word)).length / Math.max(1, words.size));
  const lengths = choices.map((choice) => choice.length);
  return [
    Math.log1p(mean(lengths)),
    Math.log1p(deviation(lengths)),
    mean(choices.map((choice) => +/\d/.test(choice))),
    mean(pairs),
    Math.max(0, ...pairs),
    mean(inStem),
    choices.length / 4,
    mean(choices.map((choice) => +/["“]/.test(choice))),
  ];
}

/** The query block: 32 numbers of form and wording, before they are scaled. */
export function queryFeatures(text: string, numTurns = 1): Float32Array {
  const { stem, choices } = splitChoices(text);
  const words = wordsOf(text);
  const stemWords = choices.length === 0 ? words : wordsOf(stem);
  const length = Math.max(1, text.length);
  const asked = new Set(stemWords);
  const has = (...any: string[]): number => +any.some((word) => asked.has(word));
  const end = stem.trimEnd().slice(-3);
  return Float32Array.from([
    Math.log1p(stemWords.length),
    Math.log1p(length),
    (10 * count(text, /\d/g)) / length,
    +/\d/.test(stem),
    (10 * count(text, /[-+*/=^<>%$()[\]|~∨⊃•≡]/g)) / length,
    (10 * count(text, /\p{Lu}/gu)) / length,
    mean(words.map((word) => word.length)),
    share(words, (word) => word.length >= 9),
    share(words, (word) => FUNCTION_WORDS.has(word)),
    +stemWords.some((word) => NEGATIONS.has(word)),
    share(words, (word) => NEGATIONS.has(word)),
    +end.endsWith('?'),
    +(/[:_…]$/.test(end) || end === '...'),
    new Set(words).size / Math.max(1, words.length),
    Math.log1p(count(stem, /[.?!](?:\s|$)/g)),
    Math.log1p(count(stem, /\n/g)),
    (50 * count(text, /["“”]/g)) / length,
    ...choiceFeatures(choices, stemWords),
    has('which', 'what'),
    has('how', 'why'),
    has('who', 'when', 'where'),
    has('if', 'suppose', 'would', 'assume'),
    (20 * count(text, /[{}`;\\]|=>|\(\)/g)) / length,
    (5 * count(text, /[^\p{Script=Latin}\p{Script=Common}]/gu)) / length,
    Math.log(numTurns),
  ]).subarray(0, NUM_QUERY_FEATURES);
}
