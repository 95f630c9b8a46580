import { join } from 'node:path';
import { expect, test } from 'vitest';
import { modelPartPaths, openModelFile } from './open-model-file.ts';

test('a model in one file is itself', () => {
  expect(modelPartPaths(join('a', 'model.gguf'))).toEqual([join('a', 'model.gguf')]);
  expect(modelPartPaths('model-1-of-3.gguf')).toEqual(['model-1-of-3.gguf']);
});

test('any part of a split model names them all, in order', () => {
  expect(modelPartPaths(join('a', 'm-00002-of-00003.gguf'))).toEqual([
    join('a', 'm-00001-of-00003.gguf'),
    join('a', 'm-00002-of-00003.gguf'),
    join('a', 'm-00003-of-00003.gguf'),
  ]);
});

test('a name that promises endless parts is refused before a file is opened', () => {
  expect(() => modelPartPaths('m-00001-of-99999.gguf')).toThrow(/a model of 99999 parts, expected 1 to 256/);
});

test('a missing file is not_found', () => {
  expect(() => openModelFile(join('no', 'such.gguf'))).toThrow(expect.objectContaining({ code: 'not_found' }));
});
