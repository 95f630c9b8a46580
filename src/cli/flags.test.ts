import { expect, test } from 'vitest';
import { readGenerateOptions } from './generate-flags.ts';
import { readModelConfig } from './load-flags.ts';

test("only what was typed is handed on, under the library's names", () => {
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

test('a value out of range is refused with the name of the flag, before anything is loaded', () => {
  expect(() => readGenerateOptions({ '--top-p': 1.5 })).toThrow(
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

test('the folder for pages and its limit are one option; the rest by name', () => {
  const typed = {
    '--memory-budget': 2 ** 30,
    '--kv-packing': 'q4',
    '--no-prefix-cache': false,
    '--kv-spill': 'folder',
    '--kv-spill-limit': 2 ** 20,
  };
  expect(readModelConfig(typed, {})).toEqual({
    memoryBudgetBytes: 2 ** 30,
    kvPacking: 'q4',
    prefixCache: false,
    kvSpill: { folder: 'folder', limitBytes: 2 ** 20 },
  });
  const environment = {
    RUVLLM_MEMORY_BUDGET: '2GiB',
    RUVLLM_KV_PACKING: 'off',
    RUVLLM_PREFIX_CACHE: 'off',
    RUVLLM_KV_SPILL: 'kept',
    RUVLLM_KV_SPILL_LIMIT: '1M',
  };
  expect(readModelConfig({}, environment)).toEqual({
    memoryBudgetBytes: 2 ** 31,
    kvPacking: 'off',
    prefixCache: false,
    kvSpill: { folder: 'kept', limitBytes: 2 ** 20 },
  });
  expect(readModelConfig({ '--kv-spill': 'typed' }, environment).kvSpill).toEqual({
    folder: 'typed',
    limitBytes: 2 ** 20,
  });
});

test('a limit without a folder is refused when typed, and waits in the environment', () => {
  expect(() => readModelConfig({ '--kv-spill-limit': 5 }, {})).toThrow('--kv-spill-limit needs --kv-spill');
  expect(readModelConfig({}, { RUVLLM_KV_SPILL_LIMIT: '5' })).toEqual({});
});

test('values of the budget are refused with the names they were typed with', () => {
  expect(() => readModelConfig({ '--memory-budget': 0 }, {})).toThrow(
    '--memory-budget must be an integer from 1 to 9007199254740991, got 0',
  );
  expect(() => readModelConfig({}, { RUVLLM_KV_SPILL: 'a\0b' })).toThrow(
    /^RUVLLM_KV_SPILL must be the path of a folder/,
  );
  expect(() => readModelConfig({}, { RUVLLM_KV_PACKING: 'q5' })).toThrow(/^RUVLLM_KV_PACKING must be one of auto, off/);
  expect(readGenerateOptions({ '--timeout': 1500 })).toEqual({ timeoutMs: 1500 });
});
