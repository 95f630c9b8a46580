import { trimEndOf, trimStartOf } from '../../core/trim.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import type { JsonValue } from '../types.ts';

/** Say nothing anywhere. Prepositions of direction, negations, quantities, comparisons, times and owners are not among them. */
const EMPTY_WORDS = new Set('a an the of in at for is are please what whats'.split(' '));
/**
 * Openings that only ask: "find hotels" asks for hotels. A bare "search", "show" or "get" stays, because a "search engine" is
 * no engine.
 */
const OPENING =
  /^(?:(?:please|kindly)\s+)?(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+)?(?:i\s+(?:want|need)\s+to\s+know\s+)?(?:(?:tell|show|give|get|find|fetch)\s+me\s+|(?:show|give|get|find|fetch|look\s+up|search\s+for|look\s+for)\s+(?=(?:the|a|an|my)\s)|(?:look\s+up|search\s+for|look\s+for|find|fetch)\s+(?!my\s))?/i;
/** Bind to the next word: "Paris to London" is not "London to Paris". */
const BINDING_WORDS = new Set(
  'to from into onto via by with without not no never before after since until till above below over under between than except excluding minus plus less more per or on about vs versus against'.split(
    ' ',
  ),
);
/** Codes, addresses, paths, names with digits: these must be equal to the letter. */
const EXACT = /[\p{N}_/\\@#=<>{}()[\]|&%$€£°:;+*^~`]|\p{Ll}\p{Lu}|\p{Lu}{2}|\w\.\w/u;
const WORD = /[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*|[^\s\p{L}\p{M}]+/gu;
const PUNCTUATION = /^[.,!?'"’“”…-]+$/u;

/**
 * The words of a text in order, without those that say nothing. Order counts: "man bites dog" is not "dog bites man", and
 * "Hilton Paris" is not "Paris Hilton". Numbers, dates and identifiers stay exactly as they are.
 */
function essence(text: string): string {
  const words: string[] = [];
  let binding = '';
  for (const piece of text.normalize('NFKC').trim().replace(OPENING, '').split(/\s+/).filter(Boolean)) {
    const bare = trimStartOf(trimEndOf(piece, '.,!?;:)"\'”’]'), '("\'“‘[');
    if (bare === '') continue;
    if (EXACT.test(bare)) {
      words.push(binding + bare);
      binding = '';
      continue;
    }
    for (const word of bare.match(WORD) ?? []) {
      if (PUNCTUATION.test(word)) continue;
      const plain = word.toLowerCase().replace(/['’]s$/, '');
      if (EMPTY_WORDS.has(plain)) continue;
      if (BINDING_WORDS.has(plain)) {
        binding += `${plain}:`;
        continue;
      }
      words.push(binding + singular(plain));
      binding = '';
    }
  }
  return [...words, ...(binding === '' ? [] : [binding])].join(' ');
}

/** Only regular plurals: "news" is not "new", and "glasses" are not "glass". */
function singular(word: string): string {
  if (word.length < 5 || !/[^aious']s$/.test(word) || /(?:ses|xes|zes|ches|shes|ies|news|arms|goods|means|series|species|lens|customs|physics|politics|economics|athletics)$/.test(word)) return word; // prettier-ignore
  return word.slice(0, -1);
}

const isText = (value: JsonValue): value is string => typeof value === 'string' && /\s/.test(value.trim());

/**
 * Whether two calls of one tool ask for the same: the same fields, equal numbers, flags and single words, and texts whose
 * essential words are equal in order. Similar meaning alone is no proof: "weather in Paris" is very near "weather in London".
 */
export function haveSameArguments(a: JsonValue, b: JsonValue): boolean {
  if (typeof a === 'string' && typeof b === 'string') {
    if (a === b) return true;
    const [one, other] = [a.trim(), b.trim()];
    const isCode = !isText(one) && !isText(other) && (EXACT.test(one) || EXACT.test(other));
    return isCode ? one === other : essence(one) !== '' && essence(one) === essence(other);
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => haveSameArguments(item as JsonValue, b[i] as JsonValue)); // prettier-ignore
  }
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    const [one, other] = [a, b] as readonly Readonly<Record<string, JsonValue>>[];
    const keys = Object.keys(one!).sort();
    if (keys.join('\0') !== Object.keys(other!).sort().join('\0')) return false;
    return keys.every((key) => haveSameArguments(one![key]!, other![key]!));
  }
  return Object.is(a, b) || (typeof a === typeof b && canonicalJson(a) === canonicalJson(b));
}

/** The words of the arguments, for their embedding. */
export function argumentText(args: JsonValue): string {
  if (args === null || typeof args !== 'object') return String(args);
  if (Array.isArray(args)) return args.map((item) => argumentText(item as JsonValue)).join(', ');
  return Object.entries(args as Readonly<Record<string, JsonValue>>)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `${key}: ${argumentText(value)}`)
    .join('; ');
}
