import { expect, test } from 'vitest';
import { readBias, readInteger, readNumber } from './values.ts';

const refusal = (message: string) =>
  expect.objectContaining({ code: 'invalid_option', message, data: { option: '--x' } });

test('numbers in decimal notation', () => {
  const texts = ['0', '-1.5', '+2', '.5', '1.', '1e-3', '2E2'];
  expect(texts.map((text) => readNumber(text, '--x'))).toEqual([0, -1.5, 2, 0.5, 1, 0.001, 200]);
});

test('everything else is refused with the flag and the value', () => {
  for (const text of ['', ' 1', '1,5', '0x10', 'NaN', 'Infinity', '1e999', '--json', '1 2']) {
    expect(() => readNumber(text, '--x')).toThrow(refusal(`--x must be a number, got ${JSON.stringify(text)}`));
  }
});

test('whole numbers that are exact', () => {
  expect(['0', '-3', '1e3', '9007199254740991'].map((text) => readInteger(text, '--x'))).toEqual([
    0, -3, 1000, 9007199254740991,
  ]);
  for (const text of ['1.5', '9007199254740992', 'many']) {
    expect(() => readInteger(text, '--x')).toThrow(refusal(`--x must be a whole number, got "${text}"`));
  }
});

test('biases are ID=VALUE', () => {
  expect(readBias('12=-3.5', '--x')).toEqual([12, -3.5]);
  for (const text of ['12', '=1', '-1=2', '1.5=2', '12=']) {
    expect(() => readBias(text, '--x')).toThrow(refusal(`--x must be ID=VALUE, got "${text}"`));
  }
  expect(() => readBias('1=x', '--x')).toThrow(refusal('--x must be a number, got "x"'));
});
