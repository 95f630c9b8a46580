import { describe, expect, test } from 'vitest';
import { compileGrammar } from '../compile.ts';
import { createFuel, DEFAULT_LIMITS } from '../limits.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';
import { ANY, complementRanges, intersectRanges, normalizeRanges } from './code-ranges.ts';
import { dfaLabel, dfaOfAny, dfaOfLengths, dfaOfTexts, dfaStep, hasEdgeInto, loopsOn, productDfa } from './dfa.ts';
import { cheapestCode, jsonCost, utf8Cost } from './dfa-measures.ts';

const encoder = new TextEncoder();

function accepts(grammar: CompiledGrammar, text: string): boolean {
  let state: GrammarState | null = grammar.start;
  for (const byte of encoder.encode(text)) {
    state = grammar.step(state, byte);
    if (state === null) return false;
  }
  return grammar.isComplete(state);
}

/** All texts of at most `length` of these characters. */
function textsOf(characters: string, length: number): string[] {
  const all = [''];
  for (let from = 0, size = 1; size <= length; size++) {
    const end = all.length;
    for (; from < end; from++) for (const character of characters) all.push(all[from]! + character);
  }
  return all;
}

/** Where a grammar and JavaScript's engine disagree. */
const differences = (grammar: CompiledGrammar, pattern: string, texts: readonly string[]): string[] => {
  const regex = new RegExp(`^(?:${pattern})$`, 'u');
  return texts.filter((text) => accepts(grammar, text) !== regex.test(text));
};

const SHORT = textsOf('ab-1', 4);
const SINGLE = [...Array.from({ length: 0x180 }, (_, code) => String.fromCodePoint(code)), '\u2027', '\u2028', '\u2029', '\u202a', '\u1680', '\u2000', '\u200a', '\u200b', '\u202f', '\u205f', '\u3000', '\ufeff', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '😀', '\u{10ffff}', '', 'ab']; // prettier-ignore

describe('[G3] patterns mean what they mean to JavaScript', () => {
  test.each([
    'a',
    'ab',
    'a|b',
    'a|b|ab',
    '',
    'a|',
    '|a',
    '(a|b)b',
    '(?:ab)?',
    '(?<name>a)b',
    'a*',
    'a+',
    'a?',
    'a{2}',
    'a{2,}',
    'a{1,2}',
    'a{0}',
    'a{0,1}b',
    'a*?b',
    'a+?',
    'a??b',
    'a{1,2}?',
    '(ab)*',
    '(a|b)*b',
    '(a*b)+',
    '(?:a|b){2,3}',
    '[ab]{2}',
    '[a-b1]+',
    '[^a]b',
    '[a-]+',
    '[-a]+',
    '[\\-a]',
    '[a\\-b]+',
    '[^ab-]*',
    '[1-a]*',
    '(a(b(1)?)?)?',
    '^ab$',
    'a(^b|1)',
    '(a$|b)1?',
    '^a|b$',
    '\\w+',
    '\\W\\d',
    '[\\d-]+',
    '[\\w-]b',
    '[\\d\\-a]+',
    'a.b',
    '..',
    '\\x61b',
    '\\u0061',
    '\\u{62}',
    '[\\x61-\\x62]*',
  ])('%s', (pattern) => {
    const grammar = compileGrammar({ type: 'regex', pattern });
    expect(differences(grammar, pattern, SHORT)).toEqual([]);
  });

  test.each([
    '.',
    '\\d',
    '\\D',
    '\\w',
    '\\W',
    '\\s',
    '\\S',
    '\\t',
    '\\n',
    '\\v',
    '\\f',
    '\\r',
    '\\0',
    '\\cA',
    '\\cz',
    '\\cJ',
    '\\x41',
    '\\u00e9',
    '\\u{1F600}',
    '\\u{10FFFF}',
    '\\ud83d\\ude00',
    '[\\ud83d\\ude00-\\u{1F601}]',
    '\\u{0}',
    '[^]',
    '[\\b]',
    '[^\\d]',
    '[\\D]',
    '[\\s\\S]',
    '\\p{L}',
    '\\P{L}',
    '\\p{Lu}',
    '[\\p{Ll}_]',
    '[^\\p{L}]',
    '\\p{Script=Greek}',
    '\\.',
    '\\*',
    '\\/',
    '\\]',
    '[\\]]',
    '[.]',
    '[$^]',
    '[a-z]',
    '[^a-z]',
    '[à-ÿ]',
    '[\\u0100-\\u017f]',
    '[\\0-\\x1f]',
    '[ -~]',
    '😀',
    '[😀a]',
    '[\\x7f-\\xa0]',
  ])('one character: %s', (pattern) => {
    const grammar = compileGrammar({ type: 'regex', pattern });
    expect(differences(grammar, pattern, SINGLE)).toEqual([]);
  });

  test.each<[string, string]>([
    ['(a', 'character 2: the group opened at character 0 is not closed'],
    ['b(a', 'the group opened at character 1 is not closed'],
    ['a)', 'character 1: unmatched )'],
    ['[a', 'the class opened at character 0 is not closed'],
    ['[a-', 'the class opened at character 0 is not closed'],
    ['[b-a]', 'the range is out of order'],
    ['a{2,1}', 'repetition from 2 down to 1'],
    ['*a', 'nothing to repeat'],
    ['+', 'nothing to repeat'],
    ['?', 'nothing to repeat'],
    ['a**', 'nothing to repeat'],
    ['a{1}{2}', 'nothing to repeat'],
    ['a*??', 'nothing to repeat'],
    ['^*', 'nothing to repeat'],
    ['$+', 'nothing to repeat'],
    ['a\\', 'a backslash at the end'],
    ['\\x4', 'expected 2 hexadecimal digits'],
    ['\\x4g', 'expected 2 hexadecimal digits'],
    ['\\u004', 'expected 4 hexadecimal digits'],
    ['\\u{110000}', 'no such code point'],
    ['\\u{}', 'no such code point'],
    ['\\u{41', 'no such code point'],
    ['\\c1', '\\c requires a letter'],
    ['\\c', '\\c requires a letter'],
    ['\\q', 'unknown escape \\q'],
    ['\\01', 'an octal escape'],
    ['\\p{Nope}', 'unknown Unicode property'],
    ['\\p', 'unknown Unicode property'],
    ['(?a)', 'unknown kind of group'],
    ['(?<a', 'group name without >'],
    ['a\\b', 'a word boundary'],
    ['a\\B', 'a word boundary'],
    ['(a)\\1', 'a back reference'],
    ['(?<n>a)\\k<n>', 'a back reference'],
    ['(?=a)', 'look-ahead'],
    ['(?!a)', 'look-ahead'],
    ['(?<=a)', 'look-behind'],
    ['(?<!a)', 'look-behind'],
  ])('%s is refused', (pattern, message) => {
    expect(() => compileGrammar({ type: 'regex', pattern })).toThrow(message);
  });

  test('groups may be as deep as the limit, and a pattern as long', () => {
    const nested = (depth: number): string => '('.repeat(depth) + 'a' + ')'.repeat(depth);
    const compile = (pattern: string, limits: object) => compileGrammar({ type: 'regex', pattern }, limits);
    expect(accepts(compile(nested(3), { maxDepth: 3 }), 'a')).toBe(true);
    expect(() => compile(nested(4), { maxDepth: 3 })).toThrow('groups nested deeper than 3');
    expect(accepts(compile('abc', { maxSourceLength: 3 }), 'abc')).toBe(true);
    expect(() => compile('abcd', { maxSourceLength: 3 })).toThrow('4 characters, the limit is 3');
  });
});

describe('[G12] GBNF grammars accept the texts of the same pattern', () => {
  test.each<[string, string]>([
    ['root ::= "a"', 'a'],
    ['root ::= "ab" | "b"', 'ab|b'],
    ['root ::= "a" "b"', 'ab'],
    ['root ::= "a"*', 'a*'],
    ['root ::= "a"+ "b"?', 'a+b?'],
    ['root ::= "a"{2}', 'a{2}'],
    ['root ::= "a"{1,}', 'a{1,}'],
    ['root ::= "a"{ 1 , 3 }', 'a{1,3}'],
    ['root ::= "a"{0} "b"', 'b'],
    ['root ::= ("a" | "b")* "-"', '(a|b)*-'],
    ['root ::= ("a" "b")+', '(ab)+'],
    ['root ::= "a"*"b"', 'a*b'],
    ['root ::= "ab"*', '(ab)*'],
    ['root ::= [ab]', '[ab]'],
    ['root ::= [a-b]+', '[a-b]+'],
    ['root ::= [^a]', '[^a]'],
    ['root ::= [^a-b]+', '[^a-b]+'],
    ['root ::= [a-]+', '[a-]+'],
    ['root ::= [-a]+', '[-a]+'],
    ['root ::= [a\\-b]+', '[ab-]+'],
    ['root ::= [1-a]', '[1-a]'],
    ['root ::= [\\x61-\\u0062]', '[ab]'],
    ['root ::= "\\x61\\U00000062"', 'ab'],
    ['root ::= .', '[^]'],
    ['root ::= . "b" .', '[^]b[^]'],
    ['root ::= x y\nx ::= "a"\ny ::= "b" | "1"', 'a(b|1)'],
    ['y ::= "b"\nroot ::= "a" y', 'ab'],
    ['root ::= "a" root | "b"', 'a*b'],
    ['root ::= x*\nx ::= "a" | "b" "1"', '(a|b1)*'],
    ['root ::= ("a"\n | "b"\n) "1"?', 'a1?|b1?'],
    ['root ::= "a" # x "b"\n', 'a'],
    ['# c\n\nroot ::= "a"\t|\n  "b"\r\n# d', 'a|b'],
    ['root ::= ( "a" ( "b" | "1" )? )+', '(a(b|1)?)+'],
    ['root ::= | "a"', 'a?'],
    ['root ::= ""', ''],
    ['root ::= "a" ""*', 'a'],
    ['root ::= x x\nx ::= "a"?', 'a?a?'],
    ['root ::= (("a")?)*', 'a*'],
    ['root ::= x-1\nx-1 ::= "-1"', '-1'],
    ['root ::= [ab] [ab] | "a" [^b]', '[ab][ab]|a[^b]'],
  ])('%s', (text, pattern) => {
    expect(differences(compileGrammar({ type: 'gbnf', text }), pattern, SHORT)).toEqual([]);
  });

  test.each(['\\n', '\\r', '\\t', '\\\\', '\\"', '\\[', '\\]'])('the escape %s', (escape) => {
    const character = JSON.parse(`"${escape.replace(/\\([[\]])/, '$1')}"`) as string;
    expect(accepts(compileGrammar({ type: 'gbnf', text: `root ::= "${escape}"` }), character)).toBe(true);
    expect(accepts(compileGrammar({ type: 'gbnf', text: `root ::= [${escape}]` }), character)).toBe(true);
  });

  test.each<[string, string]>([
    ['root ::= "a', 'the literal or class is not closed'],
    ['root ::= "a\n"', 'the literal or class is not closed'],
    ['root ::= [a', 'the literal or class is not closed'],
    ['root ::= [b-a]', 'the range is out of order'],
    ['root ::= "\\x6"', 'expected 2 hexadecimal digits'],
    ['root ::= "\\u00g1"', 'expected 4 hexadecimal digits'],
    ['root ::= "\\q"', 'unknown escape \\q'],
    ['root ::= ("a"', 'the group opened at character 9 is not closed'],
    ['root ::= "a")', 'unexpected ")"'],
    ['root ::= <a>', 'a named token at character 9'],
    ['root ::= "a" %', 'unexpected "%"'],
    ['root ::= "a"{,2}', 'expected a repetition such as {2}, {2,} or {2,5}'],
    ['root ::= "a"{x}', 'expected a repetition such as {2}, {2,} or {2,5}'],
    ['root ::= "a"{3,2}', 'repetition from 3 down to 2'],
    ['root ::= "a"{4097}', 'a repetition of more than 4096'],
    ['root ::= "a"{0,4097}', 'a repetition of more than 4096'],
    ['= "a"', 'expected a rule name'],
    ['root "a"', '::= expected'],
    ['root ::= "a"\nroot ::= "b"', 'rule root is defined twice'],
    ['root ::= a', 'rule a: is not defined'],
    ['a ::= "a"', 'rule root is missing'],
  ])('%j is refused', (text, message) => {
    expect(() => compileGrammar({ type: 'gbnf', text })).toThrow(message);
  });

  test('4096 repetitions, groups as deep as the limit and texts as long are allowed', () => {
    const compile = (text: string, limits: object = {}) => compileGrammar({ type: 'gbnf', text }, limits);
    expect(accepts(compile('root ::= "a"{4096}'), 'a'.repeat(4096))).toBe(true);
    const nested = (depth: number): string => `root ::= ${'('.repeat(depth)}"a"${')'.repeat(depth)}`;
    expect(accepts(compile(nested(3), { maxDepth: 3 }), 'a')).toBe(true);
    expect(() => compile(nested(4), { maxDepth: 3 })).toThrow('groups nested deeper than 3');
    expect(accepts(compile('root ::= "a"', { maxSourceLength: 12 }), 'a')).toBe(true);
    expect(() => compile('root ::= "ab"', { maxSourceLength: 12 })).toThrow('13 characters, the limit is 12');
  });
});

test('ranges are sorted, merged where they touch, and without surrogates', () => {
  expect(normalizeRanges([5, 6, 1, 2])).toEqual([1, 2, 5, 6]);
  expect(normalizeRanges([1, 2, 3, 4])).toEqual([1, 4]);
  expect(normalizeRanges([1, 2, 4, 4])).toEqual([1, 2, 4, 4]);
  expect(normalizeRanges([1, 9, 3, 4, 9, 9, 10, 12])).toEqual([1, 12]);
  expect(normalizeRanges([3, 2, 5, 5])).toEqual([5, 5]);
  expect(normalizeRanges([0xd7ff, 0xe000])).toEqual([0xd7ff, 0xd7ff, 0xe000, 0xe000]);
  expect(normalizeRanges([0xd800, 0xdfff])).toEqual([]);
  expect(intersectRanges([1, 5, 8, 9], [5, 8])).toEqual([5, 5, 8, 8]);
  expect(intersectRanges([1, 5, 8, 12], [2, 3, 4, 9, 11, 20])).toEqual([2, 3, 4, 5, 8, 9, 11, 12]);
  expect(intersectRanges([1, 2], [3, 4])).toEqual([]);
  expect(complementRanges([0, 4, 6, 0x10ffff])).toEqual([5, 5]);
  expect(complementRanges([])).toEqual(ANY);
  expect(complementRanges(ANY)).toEqual([]);
});

test('an automaton of texts has the label of each, and knows its edges', () => {
  const fuel = createFuel(DEFAULT_LIMITS);
  const dfa = dfaOfTexts([['ab', 1], ['ac', 1], ['b', 2], ['', 3]], fuel); // prettier-ignore
  expect(['', 'a', 'ab', 'ac', 'ad', 'b', 'bb', 'c'].map((text) => dfaLabel(dfa, text))).toEqual([3, 0, 1, 1, 0, 2, 0, 0]); // prettier-ignore
  expect([dfaStep(dfa, 0, 96), dfaStep(dfa, 0, 99)]).toEqual([-1, -1]);
  expect(dfaStep(dfa, dfaStep(dfa, 0, 97), 98)).toBe(dfaStep(dfa, dfaStep(dfa, 0, 97), 99));
  expect([hasEdgeInto(dfa, 0, 98, 200), hasEdgeInto(dfa, 0, 99, 200), hasEdgeInto(dfa, 0, 0, 97), hasEdgeInto(dfa, 0, 0, 96)]).toEqual([true, false, true, false]); // prettier-ignore
  expect(loopsOn(dfa, 0, 97, 97)).toBe(false);
  const any = dfaOfAny(fuel);
  expect([loopsOn(any, 0, 0, 0xd7ff), loopsOn(any, 0, 5, 9), loopsOn(any, 0, 0, 0xd800), loopsOn(any, 0, 0xe000, 0x10ffff), loopsOn(any, 0, 0xd7ff, 0xe000)]).toEqual([true, true, false, true, false]); // prettier-ignore
  expect([any.free[0], dfa.free[0], dfaLabel(any, 'a😀')]).toEqual([1, 0, 1]);
});

test('an automaton of lengths counts characters, and a product accepts what its label says', () => {
  const fuel = createFuel({ ...DEFAULT_LIMITS, maxStates: 6 });
  const labels = (dfa: ReturnType<typeof dfaOfAny>): number[] => ['', 'a', '😀b', 'abc', 'abcd'].map((text) => dfaLabel(dfa, text)); // prettier-ignore
  expect(labels(dfaOfLengths(1, 3, fuel))).toEqual([0, 1, 1, 1, 0]);
  expect(labels(dfaOfLengths(2, Infinity, fuel))).toEqual([0, 0, 1, 1, 1]);
  expect(labels(dfaOfLengths(0, 0, fuel))).toEqual([1, 0, 0, 0, 0]);
  expect(labels(dfaOfLengths(0, Infinity, fuel))).toEqual([1, 1, 1, 1, 1]);
  expect(() => dfaOfLengths(0, 6, fuel)).toThrow('a length of 6 with a pattern exceeds 6 states');
  expect(dfaOfLengths(0, 5, fuel).numStates).toBe(6);
  const [short, long] = [dfaOfLengths(0, 2, fuel), dfaOfLengths(1, Infinity, fuel)];
  expect(labels(productDfa([short, long], ([a, b]) => (a! > 0 && b! > 0 ? 1 : 0), fuel))).toEqual([0, 1, 1, 0, 0]);
  expect(labels(productDfa([short, long], ([a, b]) => a! + 2 * b!, fuel))).toEqual([1, 3, 3, 2, 2]);
  expect(() => productDfa([dfaOfLengths(0, 5, fuel), short], ([a]) => a!, fuel)).toThrow('more than 6 states');
});

test('bytes of characters in UTF-8 and in JSON strings, and the cheapest of a range', () => {
  expect([0x7f, 0x80, 0x7ff, 0x800, 0xffff, 0x10000].map(utf8Cost)).toEqual([1, 2, 2, 3, 3, 4]);
  expect([7, 8, 9, 10, 11, 12, 13, 14, 31, 32, 34, 92, 93, 0x80].map(jsonCost)).toEqual([6, 2, 2, 2, 6, 2, 2, 6, 6, 1, 2, 2, 1, 2]); // prettier-ignore
  const cheapest = (lo: number, hi: number): number => cheapestCode(lo, hi, jsonCost);
  expect([cheapest(0, 0x10ffff), cheapest(0, 96), cheapest(0, 31), cheapest(0, 7), cheapest(34, 35), cheapest(92, 93), cheapest(34, 34)]).toEqual([97, 65, 8, 0, 35, 93, 34]); // prettier-ignore
  expect([cheapest(0x70, 0x10ffff), cheapest(0x700, 0x900), cheapest(0x801, 0x20000), cheapest(97, 97)]).toEqual([0x70, 0x700, 0xe000, 97]); // prettier-ignore
});
