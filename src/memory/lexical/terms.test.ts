import { expect, test } from 'vitest';
import { termsOf } from './terms.ts';

test.each([
  ['The Libraries, the boxes & 2 glasses!', ['the', 'library', 'the', 'box', '2', 'glass']],
  ["Nadia's café wasn’t ÉLAN", ['nadia', 'cafe', 'wasnt', 'elan']],
  ['maxTokens of GitHub', ['maxtoken', 'max', 'token', 'of', 'github', 'git', 'hub']],
  ['東京都の図書館 opens', ['東京', '京都', '都の', 'の図', '図書', '書館', 'open']],
  ['Straße ﬁne', ['straße', 'fine']],
  ['?! …', []],
])('%s', (text, terms) => {
  expect(termsOf(text)).toEqual(terms);
});

test.each([
  ['queries', 'query'],
  ['houses', 'house'],
  ['heroes', 'heroe'],
  ['trees', 'tree'],
  ['dogs', 'dog'],
  ['gas', 'gas'], // too short
  ['haies', 'haie'], // "aies" and "eies" are no "y"
  ['heies', 'heie'],
  ['churches', 'church'],
  ['virus', 'virus'],
  ['glass', 'glass'],
  ['aliens', 'alien'],
])('the singular of %s is %s', (word, singular) => {
  expect(termsOf(word)).toEqual([singular]);
});

test('a single character of a script without word separators is a term', () => {
  expect(termsOf('の x')).toEqual(['の', 'x']);
});

test('cuts very long words', () => {
  expect(termsOf('x'.repeat(1000))).toEqual(['x'.repeat(64)]);
});
