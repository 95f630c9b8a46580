import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../core/byte-source.ts';
import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/index.ts';
import type { KernelPackFactory } from '../kernels/contract.ts';
import { createReferencePackFactory } from '../kernels/reference/reference-pack.ts';
import { buildRandomModel, type RandomArchitecture, type RandomModelOptions } from '../../test/support/random-model.ts';
import { loadRandom, runParts, testLimits } from '../../test/support/run-model.ts';
import { loadModel } from './load-model.ts';
import { planModel } from './plan-model.ts';
import { architectures, isDecoder } from './registry.ts';

const tiny: RandomModelOptions = {
  architecture: 'llama',
  type: 'F32',
  seed: 1,
  shape: { numLayers: 2, vocabSize: 260 },
};
const open = (options: Partial<RandomModelOptions> = {}) =>
  openGguf(createMemorySource(buildRandomModel({ ...tiny, ...options })));
const u32 = (key: string, value: number) => ({ key: `llama.${key}`, type: 'u32', value }) as const;

describe.each([...architectures.keys()].filter(isDecoder) as RandomArchitecture[])('%s', (architecture) => {
  test.each(['F16', 'Q5_0'] as const)('allocates exactly the planned bytes, in %s', async (type) => {
    const gguf = open({ architecture, type });
    const factory = createReferencePackFactory();
    const plan = planModel(gguf, factory, testLimits);
    const model = await loadModel(gguf, factory, { limits: testLimits });
    expect(model.pack.arena.usedBytes).toBe(plan.totalBytes);
    expect(model.pack.arena.sizeBytes).toBe(plan.totalBytes);
    const { weightBytes, kvBytes, statesBytes, activationBytes } = plan;
    expect(model.memory).toEqual({ weightBytes, kvBytes: kvBytes + statesBytes, activationBytes });
    expect(kvBytes).toBe(16 * 16 * plan.shape.numKvLayers * 2 * 2 * plan.shape.numKvHeads * plan.shape.headDim);
  });
});

test('reports loading progress matrix by matrix, up to the total', async () => {
  const progress: number[] = [];
  let total = 0;
  await loadRandom(tiny, {
    onProgress({ loadedBytes, totalBytes }) {
      progress.push(loadedBytes);
      total = totalBytes;
    },
  });
  expect(progress).toHaveLength(2 + 2 * 7);
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
  expect(progress.at(-1)).toBe(total);
});

test('rejects a model that does not fit before allocating, with both sizes', async () => {
  const gguf = open();
  const { totalBytes } = planModel(gguf, createReferencePackFactory(), testLimits);
  const create = () => expect.fail('allocated');
  const load = (maxArenaBytes: number, memoryLimitBytes: number) => {
    const factory = { ...createReferencePackFactory(), maxArenaBytes, create };
    return loadModel(gguf, factory, { limits: testLimits, memoryLimitBytes });
  };
  for (const [maxArenaBytes, limit] of [
    [totalBytes - 1, 2 ** 40],
    [2 ** 40, totalBytes - 1],
  ] as const) {
    await expect(load(maxArenaBytes, limit)).rejects.toMatchObject({
      code: 'out_of_memory',
      data: { neededBytes: totalBytes, limitBytes: totalBytes - 1 },
      message: expect.stringContaining(`${totalBytes} bytes`),
    });
  }
  await expect(load(totalBytes, 2 ** 40)).rejects.toThrowError('allocated');
});

test('says why the kernels cannot address more, unless another limit is smaller', async () => {
  const gguf = open();
  const { totalBytes } = planModel(gguf, createReferencePackFactory(), testLimits);
  const factory = { ...createReferencePackFactory(), maxArenaBytes: totalBytes - 1, limitReason: 'no Memory64' };
  const messageOf = (memoryLimitBytes: number) =>
    loadModel(gguf, factory, { limits: testLimits, memoryLimitBytes }).catch((error: Error) => error.message);
  expect(await messageOf(2 ** 40)).toMatch(new RegExp(`the limit is ${totalBytes - 1}: no Memory64$`));
  expect(await messageOf(totalBytes - 2)).toMatch(new RegExp(`the limit is ${totalBytes - 2}$`));
});

test('frees the pack when a tensor cannot be read', async () => {
  const gguf = open();
  let disposed = 0;
  const factory = createReferencePackFactory();
  const broken = {
    ...gguf,
    readTensor() {
      throw new RangeError('gone');
    },
  };
  const counting = {
    ...factory,
    create: async (...args: Parameters<typeof factory.create>) => {
      const pack = await factory.create(...args);
      return { ...pack, dispose: async () => void disposed++ };
    },
  };
  // The planner reads rope factors too; without them the first matrix fails.
  const withoutRope = { ...broken, tensors: new Map([...gguf.tensors].filter(([name]) => !name.startsWith('rope'))) };
  await expect(loadModel(withoutRope, counting, { limits: testLimits })).rejects.toThrowError('gone');
  expect(disposed).toBe(1);
});

test.each<[string, Partial<RandomModelOptions>, string, RegExp]>([
  [
    'an unknown architecture',
    { metadata: [{ key: 'general.architecture', type: 'string', value: 'mamba' }] },
    'unknown_architecture',
    /"mamba" \(supported: llama, qwen2, qwen2moe, qwen3, .*, cohere2, .*bert\)/,
  ],
  [
    'experts',
    { vectors: { 'blk.1.ffn_gate_exps.weight': new Float32Array(4) } },
    'invalid_model_file',
    /blk\.1\.ffn_gate_exps\.weight belongs to experts/,
  ],
  [
    'value heads of another length than key heads',
    { metadata: [u32('attention.value_length', 32)] },
    'unsupported',
    /a key size of 16 with a value size of 32 is not supported/,
  ],
  [
    'heads that do not divide',
    { metadata: [u32('attention.head_count_kv', 4)] },
    'invalid_model_file',
    /6 heads of 16 over 4/,
  ],
  [
    'no heads',
    { metadata: [u32('attention.head_count', 0)] },
    'invalid_model_file',
    /head_count" is 0, must be from 1/,
  ],
  ['absurd layers', { metadata: [u32('block_count', 4e9)] }, 'invalid_model_file', /block_count" is 4000000000/],
  [
    'more layers than tensors',
    { metadata: [u32('block_count', 3)] },
    'invalid_model_file',
    /blk\.2\.attn_norm\.weight/,
  ],
  [
    'a wrong shape',
    { metadata: [u32('feed_forward_length', 128)] },
    'invalid_model_file',
    /blk\.0\.ffn_gate\.weight has shape \[96, 160\], the model requires \[96, 128\]/,
  ],
  [
    'heads that differ',
    { metadata: [{ key: 'llama.attention.head_count_kv', type: 'array<u32>', value: Uint32Array.of(2, 3) }] },
    'unsupported',
    /differ between layers \(layer 0 has 2 x 16, 160, layer 1 3 x 16, 160\)/,
  ],
  [
    'no epsilon',
    { metadata: [{ key: 'llama.attention.layer_norm_rms_epsilon', value: null }] },
    'invalid_model_file',
    /layer_norm_rms_epsilon/,
  ],
  [
    'a decoder without causal attention',
    { metadata: [{ key: 'llama.attention.causal', type: 'bool', value: false }] },
    'unsupported',
    /"llama\.attention\.causal" is false, llama requires true/,
  ],
  [
    'a missing tensor',
    { omit: (name) => name === 'blk.1.ffn_down.weight' },
    'invalid_model_file',
    /blk\.1\.ffn_down\.weight/,
  ],
])('rejects %s by name', (_what, options, code, message) => {
  const plan = () => planModel(open(options), createReferencePackFactory(), testLimits);
  expect(plan).toThrowError(expect.objectContaining({ code, message: expect.stringMatching(message) }));
});

test('reports out_of_memory with the bytes if the system refuses memory, and passes on other errors', async () => {
  const failing = (error: Error) => ({
    ...createReferencePackFactory(),
    create: () => Promise.reject(error),
  });
  const load = (error: Error) => loadModel(open({}), failing(error), { limits: testLimits });
  const { totalBytes } = planModel(open({}), createReferencePackFactory(), testLimits);
  await expect(load(new RangeError('Array buffer allocation failed'))).rejects.toMatchObject({
    code: 'out_of_memory',
    message: `cannot allocate ${totalBytes} bytes: Array buffer allocation failed`,
  });
  await expect(load(new TypeError('a bug'))).rejects.toThrow('a bug');
});

test('accepts a list of equal head counts like one number', () => {
  const value = Uint32Array.of(2, 2);
  const gguf = open({ metadata: [{ key: 'llama.attention.head_count_kv', type: 'array<u32>', value }] });
  expect(planModel(gguf, createReferencePackFactory(), testLimits).shape.numKvHeads).toBe(2);
});

test('rejects unknown options and limits out of range', async () => {
  const message = expect.stringContaining('unknown option "threads"');
  await expect(loadRandom(tiny, { threads: 2 } as object)).rejects.toMatchObject({ code: 'invalid_option', message });
  for (const numPages of [0, 1.5, 2 ** 28, NaN]) {
    await expect(loadRandom(tiny, { limits: { ...testLimits, numPages } })).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringContaining('limits.numPages'),
    });
  }
});

describe('a step', () => {
  const step = {
    tokenIds: [5, 6],
    positions: [0, 1],
    slots: [0, 1],
    sequences: [{ firstRow: 0, numRows: 2, contextTokens: 2, pageIds: [0] }],
    logitRows: [1],
  };
  const [sequence] = step.sequences as [(typeof step.sequences)[0]];

  test('is rejected before it changes anything', async () => {
    const model = await loadRandom(tiny, { maxContextTokens: 40 });
    await runParts(model, [{ tokenIds: [5, 6], start: 0, pageIds: [0] }]);
    const { arena } = model.pack;
    const before = arena.u8(0, arena.usedBytes).slice();
    const bad: [object, string][] = [
      [{ tokenIds: [5, 260] }, 'invalid_token'],
      [{ tokenIds: [5, -1] }, 'invalid_token'],
      [{ tokenIds: [5, 1.5] }, 'invalid_token'],
      [{ sequences: [{ ...sequence, contextTokens: 41, pageIds: [0, 1, 2] }] }, 'context_overflow'],
      [{ tokenIds: [] }, 'internal'],
      [{ tokenIds: Array(33).fill(5) }, 'internal'],
      [{ slots: [0, 256] }, 'internal'],
      [{ slots: [0] }, 'internal'],
      [{ positions: [0, -1] }, 'internal'],
      [{ logitRows: [2] }, 'internal'],
      [{ logitRows: Array(33).fill(0) }, 'internal'],
      [{ sequences: Array(5).fill(sequence) }, 'internal'],
      [{ sequences: [{ ...sequence, pageIds: [16] }] }, 'internal'],
      [{ sequences: [{ ...sequence, pageIds: [] }] }, 'internal'],
      [{ sequences: [{ ...sequence, numRows: 3 }] }, 'internal'],
      [{ sequences: [{ ...sequence, contextTokens: 1 }] }, 'internal'],
    ];
    for (const [change, code] of bad) {
      await expect(model.forward({ ...step, ...change }), JSON.stringify(change)).rejects.toMatchObject({ code });
    }
    expect(Buffer.compare(arena.u8(0, arena.usedBytes), before)).toBe(0);
    expect(await model.forward(step)).toHaveLength(260);
  });
});

describe('kernels without some operations', () => {
  const reference = createReferencePackFactory();
  /** The reference pack, without the operations of recurrent layers and experts. */
  const lacking: KernelPackFactory = {
    ...reference,
    async create(options) {
      const missing = ['causalConv', 'experts'];
      const refuse = (name: string) => (): never => {
        throw new RuvLLMError('unsupported', `no operation ${name}`, { data: { operation: name } });
      };
      const pack = await reference.create(options);
      return { ...pack, missing, ...Object.fromEntries(missing.map((name) => [name, refuse(name)])) };
    },
  };

  test.each([
    ['lfm2', 'causalConv'],
    ['qwen3moe', 'experts'],
  ] as const)('%s is refused when it is loaded, with the name of %s', async (architecture, operation) => {
    await expect(loadModel(open({ architecture }), lacking, { limits: testLimits })).rejects.toMatchObject({
      code: 'unsupported',
      data: { operation },
    });
  });

  test('a model that needs none of them computes what it always does', async () => {
    const logitsWith = async (factory: KernelPackFactory): Promise<Float32Array[]> => {
      const model = await loadModel(open(), factory, { limits: testLimits });
      return runParts(model, [{ tokenIds: [1, 2, 3], start: 0, pageIds: [0] }]);
    };
    expect(await logitsWith(lacking)).toEqual(await logitsWith(reference));
  });
});
