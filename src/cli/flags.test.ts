import { expect, test } from 'vitest';
import { readGenerateOptions } from './generate-flags.ts';
import { readModelConfig } from './load-flags.ts';

test('passes only the given flags, under their library names', () => {
  expect(readGenerateOptions({})).toEqual({});
  expect(readGenerateOptions({ '--top-k': 5, '--stop': ['a', 'b'], '--ignore-eos': true, '--json': true })).toEqual({
    topK: 5,
    stop: ['a', 'b'],
    ignoreEos: true,
  });
  expect(
    readGenerateOptions({
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

test('rejects a value out of range, naming the flag, before loading anything', () => {
  expect(() => readGenerateOptions({ '--top-p': 1.5 })).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: '--top-p must be a number from 0 to 1, got 1.5',
      data: { option: '--top-p' },
    }),
  );
  expect(() => readModelConfig({ '--kernels': 'cuda' }, {})).toThrow(
    '--kernels must be one of auto, native, webgpu, wasm, reference, or pack:NAME, got "cuda"',
  );
});

test('flags take precedence over variables, variables over defaults', () => {
  const environment = { RUVLLM_THREADS: '3', RUVLLM_CONTEXT: '64', RUVLLM_KERNELS: 'reference' };
  expect(readModelConfig({}, {})).toEqual({});
  expect(readModelConfig({}, environment)).toEqual({ numThreads: 3, maxContext: 64, kernels: 'reference' });
  expect(readModelConfig({ '--threads': 2 }, environment)).toMatchObject({ numThreads: 2, maxContext: 64 });
  expect(readModelConfig({}, { RUVLLM_THREADS: '' })).toEqual({});
});

test('rejects an invalid variable by its name', () => {
  expect(() => readModelConfig({}, { RUVLLM_THREADS: 'two' })).toThrow('RUVLLM_THREADS must be an integer, got "two"');
  expect(() => readModelConfig({}, { RUVLLM_CONTEXT: '0' })).toThrow(
    'RUVLLM_CONTEXT must be an integer from 1 to 16777216, got 0',
  );
});

test('combines the spill folder and its limit into one option; passes the others by name', () => {
  const values = {
    '--memory-budget': 2 ** 30,
    '--kv-packing': 'q4',
    '--no-prefix-cache': false,
    '--kv-spill': 'folder',
    '--kv-spill-limit': 2 ** 20,
  };
  expect(readModelConfig(values, {})).toEqual({
    memoryBudgetBytes: 2 ** 30,
    kvPacking: 'q4',
    prefixCache: false,
    kvSpill: { folder: 'folder', limitBytes: 2 ** 20 },
  });
  const environment = {
    RUVLLM_MEMORY_BUDGET: '2GiB',
    RUVLLM_KV_PACKING: 'off',
    RUVLLM_PREFIX_CACHE: 'off',
    RUVLLM_KV_SPILL: 'pages',
    RUVLLM_KV_SPILL_LIMIT: '1M',
  };
  expect(readModelConfig({}, environment)).toEqual({
    memoryBudgetBytes: 2 ** 31,
    kvPacking: 'off',
    prefixCache: false,
    kvSpill: { folder: 'pages', limitBytes: 2 ** 20 },
  });
  expect(readModelConfig({ '--kv-spill': 'other' }, environment).kvSpill).toEqual({
    folder: 'other',
    limitBytes: 2 ** 20,
  });
});

test('rejects a spill limit without a folder as a flag, ignores it as a variable', () => {
  expect(() => readModelConfig({ '--kv-spill-limit': 5 }, {})).toThrow('--kv-spill-limit requires --kv-spill');
  expect(readModelConfig({}, { RUVLLM_KV_SPILL_LIMIT: '5' })).toEqual({});
});

test('rejects invalid budget values by flag or variable name', () => {
  expect(() => readModelConfig({ '--memory-budget': 0 }, {})).toThrow(
    '--memory-budget must be an integer from 1 to 9007199254740991, got 0',
  );
  expect(() => readModelConfig({}, { RUVLLM_KV_SPILL: 'a\0b' })).toThrow(
    /^RUVLLM_KV_SPILL must be the path of a folder/,
  );
  expect(() => readModelConfig({}, { RUVLLM_KV_PACKING: 'q5' })).toThrow(/^RUVLLM_KV_PACKING must be one of auto, off/);
  expect(readGenerateOptions({ '--timeout': 1500 })).toEqual({ timeoutMs: 1500 });
});
