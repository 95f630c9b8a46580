import { expect, test } from 'vitest';
import { randomAdapter, SMALL_BASE } from '../../test/support/random-adapter.ts';
import { affectsKv, checkAdapter, createAdapter, type LowRankFactors } from './index.ts';

const factorsOf = async (seed = 1): Promise<LowRankFactors[]> => [
  ...(await randomAdapter(SMALL_BASE, { seed })).factors,
];

test('orders factors canonically, so that their input order changes neither the adapter nor its hash', async () => {
  const factors = await factorsOf();
  const forth = await createAdapter('llama', factors);
  const back = await createAdapter('llama', factors.toReversed());
  expect(back).toEqual(forth);
  expect(forth.contentHash).toMatch(/^[0-9a-f]{64}$/);
  expect(forth.factors.map(({ layer, target }) => `${layer} ${target}`)).toEqual([
    ...[0, 1].flatMap((layer) =>
      ['attn_q', 'attn_k', 'attn_v', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down'].map((t) => `${layer} ${t}`),
    ),
    '-1 output',
  ]);
});

test('changes the hash with everything that changes the result', async () => {
  const factors = await factorsOf();
  const hashWith = async (change: (factor: LowRankFactors) => LowRankFactors, architecture = 'llama') =>
    (await createAdapter(architecture, [change(factors[0]!), ...factors.slice(1)])).contentHash;
  const nudged = (values: Float32Array): Float32Array =>
    values.map((value, i) => (i === values.length - 1 ? value + 2 ** -20 : value));
  const hashes = [
    await hashWith((factor) => factor),
    await hashWith((factor) => ({ ...factor, scale: 2.5 })),
    await hashWith((factor) => ({ ...factor, a: nudged(factor.a) })),
    await hashWith((factor) => ({ ...factor, b: nudged(factor.b) })),
    await hashWith((factor) => ({ ...factor, layer: 7 })),
    await hashWith((factor) => factor, 'qwen2'),
    (await createAdapter('llama', factors.slice(1))).contentHash,
  ];
  expect(new Set(hashes).size).toBe(hashes.length);
});

test('hashes values in shared memory like others', async () => {
  const [factor] = (await factorsOf()) as [LowRankFactors];
  const shared = new Float32Array(new SharedArrayBuffer(factor.a.byteLength));
  shared.set(factor.a);
  const { contentHash } = await createAdapter('llama', [factor]);
  expect((await createAdapter('llama', [{ ...factor, a: shared }])).contentHash).toBe(contentHash);
});

test.each<[string, (factor: LowRankFactors) => LowRankFactors, RegExp]>([
  ['NaN', (f) => ({ ...f, a: f.a.map((v, i) => (i === 3 ? NaN : v)) }), /blk\.0\.attn_q: value 3 of A is NaN/],
  ['infinity', (f) => ({ ...f, b: f.b.map((v, i) => (i === 5 ? Infinity : v)) }), /value 5 of B is Infinity/],
  ['a short factor', (f) => ({ ...f, a: f.a.subarray(1) }), /63 and 64 values, 4 x 16 and 16 x 4 require 64 and 64/],
  ['rank 0', (f) => ({ ...f, rank: 0 }), /0 x 16 and 16 x 0/],
  ['a scale that is not a number', (f) => ({ ...f, scale: NaN }), /scaled by NaN/],
  ['a scale above the limit', (f) => ({ ...f, scale: 1e30 }), /scaled by 1e\+30, the limit is 65536/],
  ['an unknown target', (f) => ({ ...f, target: 'attn_x' as 'attn_q' }), /unknown target "attn_x"/],
  ['a layer for the LM head', (f) => ({ ...f, target: 'output' }), /output cannot be in layer 0/],
  ['the same matrix twice', (f) => ({ ...f, layer: 1 }), /blk\.1\.attn_q is changed twice/],
])('rejects %s', async (_name, change, message) => {
  const factors = await factorsOf();
  await expect(createAdapter('llama', [change(factors[0]!), ...factors.slice(1)])).rejects.toThrow(message);
});

test('rejects empty adapters, ranks above the limit and too many bytes', async () => {
  await expect(createAdapter('llama', [])).rejects.toThrow('at least one matrix');
  const [factor] = (await factorsOf()) as [LowRankFactors];
  await expect(createAdapter('llama', [{ ...factor, rank: 2000 }])).rejects.toThrow('rank 2000, the limit is 1024');
  await expect(createAdapter('llama', [{ ...factor, numRows: 2 ** 28 }])).rejects.toThrow(/limit of 2147483648/);
});

test('rejects an adapter of another model and names both sides', async () => {
  const adapter = await randomAdapter(SMALL_BASE, { seed: 1 });
  expect(() => checkAdapter(adapter, SMALL_BASE)).not.toThrow();
  expect(() => checkAdapter(adapter, { ...SMALL_BASE, architecture: 'qwen2' })).toThrow(
    'the adapter is for llama, but the model is qwen2',
  );
  expect(() => checkAdapter(adapter, { ...SMALL_BASE, numLayers: 1 })).toThrow(
    'layer 1 (attn_q), the model has 1 layers',
  );
  expect(() => checkAdapter(adapter, { ...SMALL_BASE, feedForwardDim: 32 })).toThrow(
    'blk.0.ffn_gate as a matrix of 24 x 16, the model has 32 x 16',
  );
});

test('only weights after the last keys and values leave K and V unchanged', async () => {
  const affects = async (target: LowRankFactors['target'], layer: number): Promise<boolean> =>
    affectsKv(await randomAdapter(SMALL_BASE, { seed: 1, targets: [target], layers: [layer] }), SMALL_BASE);
  for (const target of ['attn_q', 'attn_output', 'ffn_gate', 'ffn_up', 'ffn_down', 'output'] as const) {
    expect([target, await affects(target, 1)]).toEqual([target, false]);
    expect([target, await affects(target, 0)]).toEqual([target, target !== 'output']);
  }
  expect([await affects('attn_k', 1), await affects('attn_v', 1)]).toEqual([true, true]);
});
