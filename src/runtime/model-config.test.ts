import { expect, test } from 'vitest';
import { type ModelConfig, planSpec, resolveModelConfig } from './model-config.ts';

const resolve = (config?: ModelConfig) => resolveModelConfig(config, { numCpus: 3 });

test('defaults', () => {
  expect(planSpec(resolve(), { path: 'm.gguf', contextLength: 32768 })).toEqual({
    path: 'm.gguf',
    kernels: 'auto',
    kvPrecision: 'f16',
    numThreads: 3,
    maxContext: 4096,
    maxBatchTokens: 512,
    maxSequences: 8,
    kvCacheTokens: 4096,
    memoryLimitBytes: null,
    repackCache: 'auto',
  });
  expect(planSpec(resolve(), { path: 'm', contextLength: 250 })).toMatchObject({
    maxContext: 250,
    kvCacheTokens: 2000,
  });
});

test('a context beyond the model or a cache below the context is refused with both numbers', () => {
  const plan = (config: ModelConfig) => () => planSpec(resolve(config), { path: 'm', contextLength: 2048 });
  expect(plan({ maxContext: 2049 })).toThrow(/"maxContext" is 2049, the model was trained for 2048/);
  expect(plan({ maxContext: 100, kvCacheTokens: 99 })).toThrow(/"kvCacheTokens" is 99.*maxContext 100/);
  expect(plan({ maxContext: 100, kvCacheTokens: 1000 })()).toMatchObject({ maxContext: 100, kvCacheTokens: 1000 });
});

test('never more sequences than rows in a step', () => {
  const spec = planSpec(resolve({ maxBatchTokens: 4 }), { path: 'm', contextLength: 64 });
  expect(spec).toMatchObject({ maxBatchTokens: 4, maxSequences: 4 });
});

test('devices that do not compute are refused, not ignored', () => {
  for (const device of ['metal', 'cuda'] as const) {
    expect(() => resolve({ device })).toThrow(expect.objectContaining({ code: 'unsupported' }));
  }
});

test('unknown options and wrong values are refused by name', () => {
  const wrong: object[] = [
    { maxContxt: 5 },
    { numThreads: 0 },
    { kernels: 'fast' },
    { device: 'tpu' },
    { onProgress: 5 },
    { signal: {} },
    { memoryLimitBytes: -1 },
    { hfToken: 7 },
  ];
  for (const config of wrong) {
    expect(() => resolve(config)).toThrow(
      expect.objectContaining({ code: 'invalid_option', data: { option: Object.keys(config)[0] } }),
    );
  }
});
