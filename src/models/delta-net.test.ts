import { expect, test } from 'vitest';
import { randomAdapter } from '../../test/support/random-adapter.ts';
import { buildRandomModel, type RandomModelOptions } from '../../test/support/random-model.ts';
import { loadRandom, runParts } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { type MetadataEntry, openGguf } from '../gguf/index.ts';
import { findModelProblems } from './find-problems.ts';
import { readShape } from './shape.ts';

const FILE: RandomModelOptions = { architecture: 'qwen35', type: 'F32', seed: 5, shape: { numLayers: 4 } };
const key = (name: string): string => `qwen35.${name}`;
const u32 = (name: string, value: number): MetadataEntry => ({ key: key(name), type: 'u32', value });
const tokenIds = Array.from({ length: 20 }, (_, i) => 3 + ((i * 37) % 300));

test('a sequence that starts in a used state has the same bits as in a new one', async () => {
  const model = await loadRandom(FILE);
  const whole = { tokenIds, start: 0, pageIds: [4, 2] };
  const first = await runParts(model, [whole]);
  await runParts(model, [{ ...whole, tokenIds: tokenIds.map((id) => id + 1) }]);
  expect(await runParts(model, [whole])).toEqual(first);
  await model.dispose();
});

test('layers that guess further tokens are not used', () => {
  const bytes = buildRandomModel({ ...FILE, metadata: [u32('nextn_predict_layers', 2)] });
  expect(readShape(openGguf(createMemorySource(bytes)))).toMatchObject({ numLayers: 2, recurrentLayers: [0] });
});

test('every fourth layer has attention in files that do not say which', () => {
  const metadata = [{ key: 'qwen3next.full_attention_interval', value: null }];
  const bytes = buildRandomModel({ ...FILE, architecture: 'qwen3next', metadata });
  expect(readShape(openGguf(createMemorySource(bytes))).recurrentLayers).toEqual([0, 1, 2]);
});

test('adapters of queries with gates are refused, others are not', async () => {
  const { shape, dispose } = await loadRandom(FILE);
  await expect(randomAdapter(shape, { seed: 3, targets: ['attn_q'], layers: [1] })).rejects.toMatchObject({
    code: 'unsupported',
    message: 'adapters of attn_q are not supported where this matrix also has the gates of attention',
  });
  const targets = ['attn_v', 'ffn_up'] as const;
  await expect(randomAdapter(shape, { seed: 3, targets, layers: [1] })).resolves.toBeDefined();
  await dispose();
});

test.each<[string, Partial<RandomModelOptions>, string, RegExp]>([
  ['a state that overflows', { metadata: [u32('ssm.state_size', 2 ** 31)] }, 'invalid_model_file', /ssm\.state_size" is 2147483648, must be from 1 to 1024/],
  ['more key heads than heads', { metadata: [u32('ssm.group_count', 5)] }, 'invalid_model_file', /ssm\.group_count" is 5, must be from 1 to 4/],
  ['key heads that heads cannot share', { metadata: [u32('ssm.group_count', 3)] }, 'invalid_model_file', /128 values in 4 heads over 3 key heads of 32 do not divide evenly/],
  ['another inner size', { metadata: [u32('ssm.inner_size', 96)] }, 'invalid_model_file', /96 values in 4 heads over 2 key heads of 32/],
  ['a convolution that is too wide', { metadata: [u32('ssm.conv_kernel', 9)] }, 'invalid_model_file', /ssm\.conv_kernel" is 9, must be from 1 to 8/],
  ['no layer with attention', { metadata: [u32('full_attention_interval', 5)] }, 'invalid_model_file', /full_attention_interval" is 5, must be from 1 to 4/],
  ['only layers that guess', { metadata: [u32('nextn_predict_layers', 4)] }, 'invalid_model_file', /nextn_predict_layers" is 4, must be from 1 to 3/],
  ['a missing matrix', { omit: (name) => name === 'blk.2.ssm_beta.weight' }, 'invalid_model_file', /blk\.2\.ssm_beta\.weight/],
  ['queries without gates', { shape: { numLayers: 4, headDim: 8 }, metadata: [u32('attention.key_length', 16), u32('attention.value_length', 16)] }, 'invalid_model_file', /attn_q\.weight has shape \[96, 96\], the model requires \[96, 192\]/],
])('rejects %s', async (_, options, code, message) => {
  await expect(loadRandom({ ...FILE, ...options })).rejects.toMatchObject({
    code,
    message: expect.stringMatching(message),
  });
}); // prettier-ignore

test('all missing tensors are named at once', () => {
  const bytes = buildRandomModel({ ...FILE, omit: (name) => /blk\.(0\.ssm_(norm|alpha)|1\.attn_q\.)/.test(name) });
  const problems = findModelProblems(openGguf(createMemorySource(bytes)));
  expect(problems.map(({ message }) => /blk\.\d\.\S+?\.weight/.exec(message)?.[0])).toEqual([
    'blk.0.ssm_alpha.weight',
    'blk.0.ssm_norm.weight',
    'blk.1.attn_q.weight',
    'blk.1.attn_q.weight',
  ]);
});
