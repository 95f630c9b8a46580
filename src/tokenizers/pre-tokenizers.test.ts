import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { PRE_TOKENIZERS } from './pre-tokenizers.ts';
import { createWordSplitter } from './word-splitter.ts';

function splitterOf(name: string): (text: string) => readonly string[] {
  return createWordSplitter(PRE_TOKENIZERS.find(({ names }) => names.includes(name))!.patterns);
}

test('every name in the table is unique', () => {
  const names = PRE_TOKENIZERS.flatMap((record) => record.names);
  expect(new Set(names).size).toBe(names.length);
});

test.each(PRE_TOKENIZERS.map(({ names, patterns }) => [names[0]!, patterns] as const))(
  '%s loses and reorders nothing',
  (_, patterns) => {
    const split = createWordSplitter(patterns);
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.string({ unit: fc.constantFrom("'", 's', ' ', '\n', '1', '.', '漢', 'É') }),
        ),
        (text) => {
          expect(split(text).join('')).toBe(text);
          expect(split(text).includes('')).toBe(text === '');
        },
      ),
    );
  },
);

const text = "I'M  ok\r\n 12345 caf\u00e9s!?\n漢字 x";

test.each([
  ['gpt-2', ['I', "'", 'M', ' ', ' ok', '\r\n', ' 12345', ' cafés', '!?', '\n', '漢字', ' x']],
  ['llama-bpe', ['I', "'M", ' ', ' ok', '\r\n', ' ', '123', '45', ' cafés', '!?\n', '漢字', ' x']],
  ['qwen2', ['I', "'M", ' ', ' ok', '\r\n', ' ', '1', '2', '3', '4', '5', ' cafés', '!?\n', '漢字', ' x']],
  ['starcoder', ['I', "'", 'M', ' ', ' ok', '\r\n ', '1', '2', '3', '4', '5', ' cafés', '!?', '\n', '漢字', ' x']],
  [
    'deepseek-coder',
    ['I', "'", 'M', ' ', ' ok', '\r', '\n', ' ', '1', '2', '3', '4', '5', ' cafés', '!?', '\n', '漢字', ' x'],
  ],
  ['deepseek-v3', ['I', "'M", ' ', ' ok', '\r\n', ' ', '123', '45', ' cafés', '!?\n', '漢字', ' x']],
])('%s splits words as its vocabulary was trained', (name, expected) => {
  expect(splitterOf(name)(text)).toEqual(expected);
});

test('treats next line as white space and the byte order mark as none, as Unicode does', () => {
  expect(splitterOf('gpt-2')('a \u0085b')).toEqual(['a', ' ', '\u0085', 'b']);
  expect(splitterOf('gpt-2')('a \ufeffb')).toEqual(['a', ' \ufeff', 'b']);
});

// A quadratic pattern takes minutes on one of these; a linear one milliseconds.
test.each(PRE_TOKENIZERS.map(({ names }) => names[0]!))('%s scans a long run of one kind only once', (name) => {
  const split = splitterOf(name);
  for (const unit of [' ', '\n', '1', 'A', '!', '漢', 'é', "'"]) {
    for (const end of ['', 'x', '1', '!', '漢', '\u0301']) {
      const run = `x${unit.repeat(100_000)}${end}`;
      expect(split(run).join('') === run, JSON.stringify(unit + end)).toBe(true);
    }
  }
});
