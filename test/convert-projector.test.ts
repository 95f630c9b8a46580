// SmolVLM checkpoints: the image encoder becomes an mmproj file.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { type GgufFile, openGguf } from '../src/gguf/index.ts';
import { createReferencePackFactory } from '../src/kernels/reference/reference-pack.ts';
import { openVisionEncoder } from '../src/vision/open-encoder.ts';
import { normals } from './support/random-values.ts';
import { buildRandomVision, VISION_SHAPE } from './support/random-vision.ts';
import { runCommand } from './support/run-command.ts';
import { type NamedTensor, safetensors } from './support/safetensors-file.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-projector-');
const environment = { PATH: process.env['PATH'], HOME: root.newFolder() };
const convert = (...args: string[]) => runCommand(['convert', ...args], { environment });

const NAMES: Readonly<Record<string, string>> = {
  ln1: 'layer_norm1',
  ln2: 'layer_norm2',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_out: 'self_attn.out_proj',
  ffn_up: 'mlp.fc1',
  ffn_down: 'mlp.fc2',
  patch_embd: 'embeddings.patch_embedding',
  position_embd: 'embeddings.position_embedding',
  post_ln: 'post_layernorm',
};

function hfName(name: string): string {
  if (name === 'mm.model.fc.weight') return 'model.connector.modality_projection.proj.weight';
  const [, layer, module, part] = /^v\.(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)$/.exec(name)!;
  return `model.vision_model.${layer === undefined ? '' : `encoder.layers.${layer}.`}${NAMES[module!]!}.${part!}`;
}

function bytesOf(gguf: GgufFile, name: string): Uint8Array {
  const bytes = new Uint8Array(gguf.tensor(name).sizeBytes);
  gguf.readTensor(gguf.tensor(name), bytes);
  return bytes;
}

const { imageSize, patchSize, scaleFactor, dim, numHeads, ffn, mean, std } = VISION_SHAPE;
const config = {
  model_type: 'smolvlm',
  scale_factor: scaleFactor,
  text_config: { model_type: 'llama', hidden_size: 64 },
  vision_config: {
    model_type: 'smolvlm_vision',
    hidden_act: 'gelu_pytorch_tanh',
    image_size: imageSize,
    patch_size: patchSize,
    hidden_size: dim,
    intermediate_size: ffn,
    num_hidden_layers: 2,
    num_attention_heads: numHeads,
    // Without layer_norm_eps: the random file has the model's default.
  },
};

function writeFolder(changes: object = {}, edit = (tensors: NamedTensor[]): NamedTensor[] => tensors): string {
  const folder = root.newFolder();
  mkdirSync(folder, { recursive: true });
  const gguf = openGguf(createMemorySource(buildRandomVision()));
  const tensors = [...gguf.tensors.values()].map(({ name, dims }) => {
    return { name: hfName(name), shape: dims.toReversed(), values: new Float32Array(bytesOf(gguf, name).buffer) };
  });
  const text = { name: 'model.text_model.norm.weight', shape: [64], values: new Float32Array(64) };
  writeFileSync(join(folder, 'model.safetensors'), safetensors([...edit(tensors), text]));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...config, ...changes }));
  writeFileSync(join(folder, 'preprocessor_config.json'), JSON.stringify({ image_mean: mean, image_std: std }));
  return folder;
}

test('the encoder of a checkpoint becomes the file that holds the same weights', async () => {
  const folder = writeFolder();
  const path = `${folder}.gguf`;
  const { status, stdout, stderr } = await convert(folder, path, '--type', 'F32', '--mmproj');
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(/^wrote .*: clip, 38 tensors/);
  const [converted, expected] = [openGguf(createMemorySource(readFileSync(path))), openGguf(createMemorySource(buildRandomVision()))]; // prettier-ignore
  expect([...converted.tensors.keys()].toSorted()).toEqual([...expected.tensors.keys()].toSorted());
  for (const { name, dims } of expected.tensors.values()) {
    expect(converted.tensor(name).dims, name).toEqual(dims);
    expect(bytesOf(converted, name), name).toEqual(bytesOf(expected, name));
  }
  for (const { key, value } of expected.entries) expect(converted.metadata.get(key), key).toEqual(value);
  const encode = async (gguf: GgufFile) => {
    const encoder = await openVisionEncoder(gguf, createReferencePackFactory(), { numThreads: 1 });
    return [...(await encoder.encode(normals(3 * imageSize ** 2, 7)))];
  };
  expect(await encode(converted)).toEqual(await encode(expected));
  expect((await convert(folder, path, '--mmproj', '--type', 'F16', '--force')).status).toBe(0);
  const halves = openGguf(createMemorySource(readFileSync(path)));
  expect(halves.tensor('v.blk.0.attn_q.weight').type).toBe('F16');
  expect(halves.tensor('v.patch_embd.weight').type).toBe('F32');
});

test.each<[string, object, ((tensors: NamedTensor[]) => NamedTensor[]) | undefined, RegExp]>([
  [
    'another model',
    { model_type: 'qwen2_vl' },
    undefined,
    /"qwen2_vl" has no projector .* \(supported: idefics3, smolvlm\)/,
  ],
  [
    'a missing tensor',
    {},
    (tensors) => tensors.slice(1),
    /"model\.vision_model\.embeddings\.patch_embedding\.weight" is missing/,
  ],
  [
    'another width of the text',
    { text_config: { hidden_size: 96 } },
    undefined,
    /proj\.weight" is 64 x 128, config\.json implies 96 x 128/,
  ],
  [
    'squares that do not divide',
    { scale_factor: 5 },
    undefined,
    /images of 24 do not divide into squares of 5 patches of 4/,
  ],
])('refuses %s', async (_what, changes, edit, message) => {
  const folder = writeFolder(changes, edit);
  const { status, stderr } = await convert(folder, `${folder}.gguf`, '--mmproj');
  expect(status).not.toBe(0);
  expect(stderr).toMatch(message);
  expect(existsSync(`${folder}.gguf`)).toBe(false);
});
