import { describe, expect, test } from 'vitest';
import { chooseGgufFile, matchesQuant, quantOf } from './gguf-choice.ts';

const FILES = [
  'README.md',
  'm-fp16.gguf',
  'm-q2_k.gguf',
  'm-q4_0.gguf',
  'm-q4_k_m.gguf',
  'm-q8_0.gguf',
  'mmproj-m-f16.gguf',
];
const any = { quant: null, file: null };

describe('chooseGgufFile', () => {
  test('matches a quantization in either case, as a whole word', () => {
    expect(chooseGgufFile(FILES, { quant: 'Q8_0', file: null }, 'r')).toBe('m-q8_0.gguf');
    expect(chooseGgufFile(['M.Q4_K_S.gguf', 'M.Q4_K.gguf'], { quant: 'q4_k', file: null }, 'r')).toBe('M.Q4_K.gguf');
    expect(chooseGgufFile(['Q5_K_M/m.gguf'], { quant: 'q5_k_m', file: null }, 'r')).toBe('Q5_K_M/m.gguf');
    expect(() => chooseGgufFile(FILES, { quant: 'q4_k', file: null }, 'r')).toThrow(
      /r has no GGUF file for q4_k \(it has: /,
    );
  });

  test('chooses by preference without a quantization, whatever the order', () => {
    expect(chooseGgufFile(FILES, any, 'r')).toBe('m-q4_k_m.gguf');
    expect(chooseGgufFile(FILES.toReversed(), any, 'r')).toBe('m-q4_k_m.gguf');
    expect(chooseGgufFile(['a-q8_0.gguf', 'a-q4_0.gguf'], any, 'r')).toBe('a-q4_0.gguf');
    expect(chooseGgufFile(['only.gguf', 'mmproj-x-q4_0.gguf'], any, 'r')).toBe('only.gguf');
    expect(() => chooseGgufFile(['a.gguf', 'b.gguf'], any, 'r')).toThrow(
      /r has 2 models; choose one: a\.gguf, b\.gguf/,
    );
    expect(() => chooseGgufFile(['x.bin'], any, 'r')).toThrow(/no GGUF file among its 1 files/);
  });

  test('prefers a whole file to a split one, and rejects a repository of only splits', () => {
    const split = ['m-q4_k_m-00001-of-00002.gguf', 'm-q4_k_m-00002-of-00002.gguf'];
    expect(chooseGgufFile([...split, 'm-q8_0.gguf'], any, 'r')).toBe('m-q8_0.gguf');
    expect(chooseGgufFile([...split, 'm-x-q4_k_m.gguf'], { quant: 'q4_k_m', file: null }, 'r')).toBe('m-x-q4_k_m.gguf');
    for (const request of [any, { quant: 'q4_k_m', file: null }, { quant: null, file: split[0]! }]) {
      expect(() => chooseGgufFile(split, request, 'r')).toThrow(expect.objectContaining({ code: 'unsupported' }));
    }
  });

  test('requires a named file to exist', () => {
    expect(chooseGgufFile(FILES, { quant: null, file: 'm-q2_k.gguf' }, 'r')).toBe('m-q2_k.gguf');
    expect(() => chooseGgufFile(FILES, { quant: null, file: 'x.gguf' }, 'r')).toThrow(/r has no file x\.gguf/);
  });
});

test('quantOf and matchesQuant', () => {
  expect(quantOf('a/Model-1.5-IQ2_XXS.gguf')).toBe('IQ2_XXS');
  expect(quantOf('model.gguf')).toBe(null);
  expect(matchesQuant('m-UD-Q4_K_XL.gguf', 'q4_k_xl')).toBe(true);
  expect(matchesQuant('m-IQ4_NL.gguf', 'Q4_NL')).toBe(false);
});
