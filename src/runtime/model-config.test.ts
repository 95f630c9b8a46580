import { expect, test } from 'vitest';
import { type ModelConfig, planSpec, resolveModelConfig } from './model-config.ts';

const resolve = (config?: ModelConfig) => resolveModelConfig(config, { numCpus: 3 });

const plan = (config: ModelConfig, contextLength: number) =>
  planSpec(resolve(config), { path: 'm.gguf', contextLength }, null);

test('defaults', () => {
  expect(plan({}, 32768)).toEqual({
    path: 'm.gguf',
    blockSalt: null,
    kernels: 'auto',
    gpuLayers: 'auto',
    gpuMemoryBytes: null,
    kvPrecision: 'f16',
    numThreads: 3,
    maxContext: 4096,
    isContextGiven: false,
    maxBatchTokens: 512,
    maxSequences: 8,
    kvCacheTokens: null,
    memoryBudgetBytes: null,
    kvPacking: 'auto',
    prefixCache: true,
    spill: null,
    shared: null,
    maxWaiting: 1024,
    maxRunningPerTenant: null,
    maxRequestsPerTenant: null,
    memoryLimitBytes: null,
    speculation: 'auto',
    draftPath: null,
    repackCache: 'auto',
  });
  expect(resolve()).toMatchObject({ kvSpill: null, maxSessions: 10_000 });
  expect(plan({}, 250)).toMatchObject({ maxContext: 250, isContextGiven: false });
});

test('a context beyond the model or a cache below the context is refused with both numbers', () => {
  expect(() => plan({ maxContext: 2049 }, 2048)).toThrow(/"maxContext" is 2049; the model was trained for 2048/);
  expect(() => plan({ maxContext: 100, kvCacheTokens: 99 }, 2048)).toThrow(/"kvCacheTokens" is 99.*maxContext 100/);
  expect(plan({ maxContext: 100, kvCacheTokens: 1000 }, 2048)).toMatchObject({
    maxContext: 100,
    isContextGiven: true,
    kvCacheTokens: 1000,
  });
});

test('a context that was not asked for shrinks to the tokens that were', () => {
  expect(plan({ kvCacheTokens: 99 }, 2048)).toMatchObject({ maxContext: 99, isContextGiven: false });
});

test('never more sequences than rows in a step', () => {
  expect(plan({ maxBatchTokens: 4 }, 64)).toMatchObject({ maxBatchTokens: 4, maxSequences: 4 });
});

test('what the engine is told is what was asked for', () => {
  const wish = {
    memoryBudgetBytes: 1e9,
    kvPacking: 'q4',
    prefixCache: false,
    maxWaiting: 5,
    maxRunningPerTenant: 2,
    maxRequestsPerTenant: 4,
  } as const;
  expect(plan(wish, 64)).toMatchObject(wish);
  const spill = { folder: 'f', limitBytes: 1, masterKey: new Uint8Array(32) };
  expect(planSpec(resolve(), { path: 'm', contextLength: 64 }, spill).spill).toBe(spill);
});

test('a folder for pages has a limit, and a key where one was given', () => {
  expect(resolve({ kvSpill: { folder: 'f' } }).kvSpill).toEqual({ folder: 'f', limitBytes: 2 ** 33, masterKey: null });
  const masterKey = new Uint8Array(32).fill(7);
  const kvSpill = { folder: 'f', limitBytes: 0, masterKey };
  expect(resolve({ kvSpill }).kvSpill).toEqual(kvSpill);
  expect(resolve({ kvSpill: null }).kvSpill).toBeNull();
});

test('the fields of kvSpill are refused by their own names, and a key is never shown', () => {
  const refusals: [unknown, string, string][] = [
    ['f', 'kvSpill', 'got string'],
    [[], 'kvSpill', 'got object'],
    [{}, 'kvSpill.folder', 'got undefined'],
    [{ folder: '' }, 'kvSpill.folder', 'got ""'],
    [{ folder: 'a\0b' }, 'kvSpill.folder', 'path of a folder'],
    [{ folder: 'f', limitBytes: -1 }, 'kvSpill.limitBytes', 'got -1'],
    [{ folder: 'f', limitBytes: 1.5 }, 'kvSpill.limitBytes', 'got 1.5'],
    [{ folder: 'f', masterKey: new Uint8Array(31) }, 'kvSpill.masterKey', '32 bytes, got 31'],
    [{ folder: 'f', masterKey: 'secret' }, 'kvSpill.masterKey', 'got string'],
    [{ folder: 'f', limit: 1 }, 'limit', 'unknown option'],
  ];
  for (const [kvSpill, option, words] of refusals) {
    const message = expect.stringMatching(new RegExp(`^(?!.*secret).*${words}`, 's'));
    expect(() => resolve({ kvSpill } as object)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message, data: { option } }),
    );
  }
});

test('layers and memory of a GPU are refused with other kernels, with the numbers', () => {
  const wrong = { gpuLayers: 12, gpuMemoryBytes: 2 ** 30 } as const;
  for (const kernels of ['auto', 'native', 'wasm', 'reference'] as const) {
    for (const [option, value] of Object.entries(wrong)) {
      expect(() => resolve({ kernels, [option]: value })).toThrow(
        expect.objectContaining({
          code: 'invalid_option',
          message: `option "${option}" is ${value}; it requires the kernels webgpu, got ${kernels}`,
          data: { option, value, kernels },
        }),
      );
    }
  }
  expect(plan({ ...wrong, kernels: 'webgpu' }, 2048)).toMatchObject(wrong);
  expect(plan({ gpuLayers: 'auto', kernels: 'webgpu' }, 2048)).toMatchObject({ gpuLayers: 'auto' });
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
    { gpuLayers: -1 },
    { gpuLayers: 2.5 },
    { gpuLayers: 'all' },
    { gpuMemoryBytes: 0 },
    { device: 'tpu' },
    { onProgress: 5 },
    { signal: {} },
    { memoryLimitBytes: -1 },
    { hfToken: 7 },
    { memoryBudgetBytes: 0 },
    { memoryBudgetBytes: 1.5 },
    { kvPacking: 'q2' },
    { prefixCache: 'yes' },
    { maxWaiting: 0 },
    { maxRunningPerTenant: 0 },
    { maxRequestsPerTenant: 2 ** 21 },
    { maxSessions: 0 },
  ];
  for (const config of wrong) {
    expect(() => resolve(config)).toThrow(
      expect.objectContaining({ code: 'invalid_option', data: { option: Object.keys(config)[0] } }),
    );
  }
});
