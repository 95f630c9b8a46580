// Forms of checkpoints beside the usual one of their family.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { type GgufFile, openGguf } from '../src/gguf/index.ts';
import { convertFolder } from '../src/node/convert-folder.ts';
import { writeHfFolder } from './support/hf-folder.ts';
import type { HfKind } from './support/hf-kind.ts';
import { buildHfModel, HF_KINDS } from './support/hf-models.ts';
import type { NamedTensor } from './support/safetensors-file.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-variants-');

interface Variant {
  readonly kind?: Partial<HfKind>;
  readonly changes?: Record<string, unknown>;
  readonly edit?: (tensors: readonly NamedTensor[]) => readonly NamedTensor[];
}

function convert(title: string, { kind, changes = {}, edit }: Variant): GgufFile {
  const folder = root.newFolder();
  writeHfFolder(folder, buildHfModel(title), { ...HF_KINDS[title]!, ...kind }, edit);
  const configPath = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as Record<string, object>;
  const text = config['text_config'];
  const changed = text === undefined ? { ...config, ...changes } : { ...config, text_config: { ...text, ...changes } };
  writeFileSync(configPath, JSON.stringify(changed));
  const path = `${folder}.gguf`;
  convertFolder({ folder, path, type: 'F32' });
  return openGguf(createMemorySource(readFileSync(path)));
}

function floats(gguf: GgufFile, name: string): Float32Array {
  const tensor = gguf.tensor(name);
  const bytes = new Uint8Array(tensor.sizeBytes);
  gguf.readTensor(tensor, bytes);
  return new Float32Array(bytes.buffer);
}

const original = (title: string): GgufFile => openGguf(createMemorySource(buildHfModel(title)));
const extra = (name: string): NamedTensor => ({ name, shape: [1], values: new Float32Array(1) });

test('omits layers that only guess further tokens', () => {
  const edit = (tensors: readonly NamedTensor[]) => [...tensors, extra('model.layers.2.eh_proj.weight')];
  expect([...convert('deepseek2', { edit }).tensors.keys()].toSorted()).toEqual(
    [...original('deepseek2').tensors.keys()].toSorted(),
  );
});

test('a tied output with a factor of its own becomes a tensor, and none with the factor of the embedding', () => {
  const edit = (tensors: readonly NamedTensor[]) => tensors.filter(({ name }) => name !== 'lm_head.weight');
  const tied = { tie_word_embeddings: true };
  const converted = convert('falcon-h1', { edit, changes: tied });
  // Factors 4 and 1/8.
  expect(floats(converted, 'output.weight')).toEqual(floats(converted, 'token_embd.weight').map((value) => value / 32));
  const equal = convert('falcon-h1', { edit, changes: { ...tied, lm_head_multiplier: 4 } });
  expect(equal.tensors.has('output.weight')).toBe(false);
});

test('tokens of images and sound have no inputs of layers', () => {
  const [numCols, numRows] = [6 * 256, 300];
  const edit = (tensors: readonly NamedTensor[]) =>
    tensors.map((tensor) =>
      tensor.name.includes('embed_tokens_per_layer')
        ? { ...tensor, shape: [numRows, numCols], values: tensor.values.subarray(0, numRows * numCols) }
        : tensor,
    );
  const converted = convert('gemma3n', { edit, changes: { vocab_size_per_layer_input: numRows } });
  const values = floats(converted, 'per_layer_token_embd.weight');
  const expected = floats(original('gemma3n'), 'per_layer_token_embd.weight').fill(0, numRows * numCols);
  expect(values).toEqual(expected);
});

test('reads rotations for each kind of layer', () => {
  const { metadata } = convert('gemma3', {
    changes: {
      rope_theta: undefined,
      rope_scaling: undefined,
      rope_parameters: {
        full_attention: { rope_type: 'linear', factor: 8, rope_theta: 2e6 },
        sliding_attention: { rope_type: 'default', rope_theta: 3e4 },
      },
    },
  });
  expect(metadata.number('gemma3.rope.freq_base')).toBe(2e6);
  expect(metadata.number('gemma3.rope.scaling.factor')).toBe(8);
  expect(metadata.number('gemma3.rope.freq_base_swa')).toBe(3e4);
});

test('converts the text part of a model that sees', () => {
  const kind = { outerType: 'smolvlm', prefix: 'model.text_model' };
  const edit = (tensors: readonly NamedTensor[]) => [
    ...tensors,
    extra('model.vision_model.post_layernorm.weight'),
    extra('model.connector.modality_projection.proj.weight'),
  ];
  const converted = convert('llama', { kind, edit });
  expect(floats(converted, 'blk.1.attn_q.weight')).toEqual(floats(original('llama'), 'blk.1.attn_q.weight'));
  expect(converted.tensors.size).toBe(original('llama').tensors.size);
});

test('Granite with experts may have a shared one', () => {
  const { tensors, metadata } = convert('granitemoe', {
    kind: { modelType: 'granitemoeshared' },
    changes: { shared_intermediate_size: 32 },
    edit: (tensors) => [
      ...tensors,
      ...[0, 1].flatMap((layer) => [
        {
          name: `model.layers.${layer}.shared_mlp.input_linear.weight`,
          shape: [64, 96],
          values: Float32Array.from({ length: 64 * 96 }, (_, i) => i),
        },
        {
          name: `model.layers.${layer}.shared_mlp.output_linear.weight`,
          shape: [96, 32],
          values: new Float32Array(96 * 32),
        },
      ]),
    ],
  });
  expect(tensors.get('blk.1.ffn_up_shexp.weight')!.dims).toEqual([96, 32]);
  expect(metadata.number('granitemoe.expert_shared_feed_forward_length')).toBe(32);
});

test('LFM 2 may list the layers with attention', () => {
  const { metadata } = convert('lfm2', {
    changes: { layer_types: undefined, full_attn_idxs: [1], rope_theta: undefined },
  });
  expect([...(metadata.numbers('lfm2.attention.head_count_kv') as Int32Array)]).toEqual([0, 2]);
  expect(metadata.number('lfm2.rope.freq_base')).toBe(1e6);
});

test('GLM names the kind of every layer', () => {
  const { metadata } = convert('deepseek2', {
    kind: { modelType: 'glm4_moe_lite' },
    changes: { first_k_dense_replace: undefined, mlp_layer_types: ['dense', 'sparse'] },
  });
  expect(metadata.number('deepseek2.leading_dense_block_count')).toBe(1);
});
