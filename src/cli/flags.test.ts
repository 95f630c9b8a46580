import { expect, test } from 'vitest';
import { readGenerateParams } from './generate-flags.ts';
import { readModelConfig } from './load-flags.ts';

test("only what was typed is handed on, under the library's names", () => {
  expect(readGenerateParams({})).toEqual({});
  expect(readGenerateParams({ '--top-k': 5, '--stop': ['a', 'b'], '--ignore-eos': true, '--json': true })).toEqual({
    topK: 5,
    stop: ['a', 'b'],
    ignoreEos: true,
  });
  expect(
    readGenerateParams({
      '--logit-bias': [
        [3, 1],
        [4, -1],
        [3, 2],
      ],
    }).logitBias,
  ).toEqual(
    new Map([
      [3, 2],
      [4, -1],
    ]),
  );
});

test('a value out of range is refused with the name of the flag, before anything is loaded', () => {
  expect(() => readGenerateParams({ '--top-p': 1.5 })).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: '--top-p must be a number from 0 to 1, got 1.5',
      data: { option: '--top-p' },
    }),
  );
  expect(() => readModelConfig({ '--kernels': 'cuda' }, {})).toThrow(
    '--kernels must be one of auto, native, wasm, reference, got "cuda"',
  );
});

test('flag before environment before default', () => {
  const environment = { RUVLLM_THREADS: '3', RUVLLM_CONTEXT: '64', RUVLLM_KERNELS: 'reference' };
  expect(readModelConfig({}, {})).toEqual({});
  expect(readModelConfig({}, environment)).toEqual({ numThreads: 3, maxContext: 64, kernels: 'reference' });
  expect(readModelConfig({ '--threads': 2 }, environment)).toMatchObject({ numThreads: 2, maxContext: 64 });
  expect(readModelConfig({}, { RUVLLM_THREADS: '' })).toEqual({});
});

test('a bad variable is refused with its own name', () => {
  expect(() => readModelConfig({}, { RUVLLM_THREADS: 'two' })).toThrow(
    'RUVLLM_THREADS must be a whole number, got "two"',
  );
  expect(() => readModelConfig({}, { RUVLLM_CONTEXT: '0' })).toThrow(
    'RUVLLM_CONTEXT must be an integer from 1 to 16777216, got 0',
  );
});
