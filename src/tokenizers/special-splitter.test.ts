import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSpecialSplitter } from './special-splitter.ts';
import { TOKEN, type Vocabulary } from './vocabulary.ts';

function vocabularyOf(tokens: Readonly<Record<string, number>>): Vocabulary {
  const texts = Object.keys(tokens);
  return {
    texts,
    attributes: Uint8Array.from(Object.values(tokens)),
    ids: new Map(texts.map((text, id) => [text, id])),
  };
}

function pieces(vocabulary: Vocabulary, text: string, which: 'all' | 'user-defined' = 'all'): (string | number)[] {
  const result: (string | number)[] = [];
  createSpecialSplitter(vocabulary, which).split(text, {
    text: (piece) => void result.push(piece),
    token: (id) => void result.push(id),
  });
  return result;
}

test('splits at control, user-defined and unknown tokens; plain text only at user-defined ones', () => {
  const vocabulary = vocabularyOf({
    '<c>': TOKEN.control,
    '<u>': TOKEN.userDefined,
    '<?>': TOKEN.unknown,
    '<n>': TOKEN.normal,
  });
  expect(pieces(vocabulary, 'a<c><u>b<?><n>')).toEqual(['a', 0, 1, 'b', 2, '<n>']);
  expect(pieces(vocabulary, 'a<c><u>b<?><n>', 'user-defined')).toEqual(['a<c>', 1, 'b<?><n>']);
  // A control token that the file calls user-defined stays text in user input.
  const both = vocabularyOf({ '<c>': TOKEN.control | TOKEN.userDefined });
  expect(pieces(both, '<c>', 'user-defined')).toEqual(['<c>']);
  expect(pieces(both, '')).toEqual([]);
});

test('the longer spelling wins, even if a shorter one starts earlier', () => {
  const vocabulary = vocabularyOf({ ab: TOKEN.control, bcd: TOKEN.control, b: TOKEN.control });
  expect(pieces(vocabulary, 'abcd')).toEqual(['a', 1]);
  expect(pieces(vocabulary, 'abc')).toEqual([0, 'c']);
  expect(pieces(vocabulary, 'xbx')).toEqual(['x', 2, 'x']);
});

test('strips white space on the side that the token specifies', () => {
  const vocabulary = vocabularyOf({ '<l>': TOKEN.control | TOKEN.stripLeft, '<r>': TOKEN.control | TOKEN.stripRight });
  expect(pieces(vocabulary, 'a \n<l> b<r>\t c <r> ')).toEqual(['a', 0, ' b', 1, 'c ', 1]);
});

/** The definition: one token after another, longest first, each over the text left by the previous ones. */
function slowPieces(spellings: readonly string[], text: string): (string | number)[] {
  let result: (string | number)[] = text === '' ? [] : [text];
  const order = spellings.map((_, id) => id).sort((a, b) => spellings[b]!.length - spellings[a]!.length || a - b);
  for (const id of order) {
    result = result.flatMap((piece) =>
      typeof piece === 'number'
        ? [piece]
        : piece
            .split(spellings[id]!)
            .flatMap((part, i) => (i === 0 ? [part] : [id, part]))
            .filter((part) => part !== ''),
    );
  }
  return result;
}

test('agrees with the definition for any set of spellings', () => {
  const spelling = fc.string({ unit: fc.constantFrom('a', 'b', '<'), minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(
      fc.uniqueArray(spelling, { minLength: 1, maxLength: 8 }),
      fc.string({ unit: fc.constantFrom('a', 'b', '<', ' '), maxLength: 60 }),
      (spellings, text) => {
        const vocabulary = vocabularyOf(Object.fromEntries(spellings.map((text) => [text, TOKEN.control])));
        expect(pieces(vocabulary, text)).toEqual(slowPieces(spellings, text));
      },
    ),
    { numRuns: 2000 },
  );
});
