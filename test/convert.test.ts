import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { type GgufFile, openGguf } from '../src/gguf/index.ts';
import { createTokenizer } from '../src/tokenizers/index.ts';
import { writeHfFolder } from './support/hf-folder.ts';
import { buildRandomModel, type RandomArchitecture } from './support/random-model.ts';
import { runCommand } from './support/run-command.ts';
import { tokenizerModel, vocabularyParts } from './support/tokenizer-model.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-convert-');
const environment = { PATH: process.env['PATH'], HOME: root.newFolder() };
const convert = (...args: string[]) => runCommand(['convert', ...args], { environment });

const open = (bytes: Uint8Array): GgufFile => openGguf(createMemorySource(bytes));
function buildModel(architecture: RandomArchitecture): Uint8Array<ArrayBuffer> {
  // The converter of Llama writes no divisors of frequencies without Llama 3's scaling.
  const omit = (name: string): boolean => name === 'rope_freqs.weight';
  return buildRandomModel({ architecture, type: 'F32', seed: 3, shape: { numLayers: 2 }, omit });
}

test('a tokenizer.model becomes the vocabulary', async () => {
  const folder = root.newFolder();
  writeHfFolder(folder, buildModel('llama'));
  const [tokens, scores, types] = vocabularyParts(320);
  const model = tokenizerModel(320);
  writeFileSync(join(folder, 'tokenizer.model'), model);
  writeFileSync(join(folder, 'chat_template.jinja'), '{{ messages[0].content }}');
  const path = `${folder}.gguf`;
  expect((await convert(folder, path, '--type', 'Q8_0')).stdout).toMatch(/^wrote .*llama, 21 tensors/);
  const { metadata, tensors } = open(readFileSync(path));
  expect(tensors.get('blk.0.ffn_up.weight')!.type).toBe('Q8_0');
  expect(metadata.strings('tokenizer.ggml.tokens')).toEqual(tokens);
  expect(metadata.numbers('tokenizer.ggml.scores')).toEqual(scores);
  expect(metadata.numbers('tokenizer.ggml.token_type')).toEqual(types);
  expect(metadata.string('tokenizer.chat_template')).toBe('{{ messages[0].content }}');
  const tokenizer = createTokenizer(metadata);
  expect(tokenizer.decode(tokenizer.encode('the rest'))).toBe('the rest');
  expect(metadata.boolean('tokenizer.ggml.add_space_prefix')).toBe(false);
  writeFileSync(join(folder, 'tokenizer.model'), model.subarray(0, 1000));
  expect((await convert(folder, path, '--force')).stderr).toMatch(
    /tokenizer\.model: a field of \d+ bytes at \d+ of 1000/,
  );
});

test('refuses what it cannot convert, with the reason, and leaves no file', async () => {
  const folder = root.newFolder();
  writeHfFolder(folder, buildModel('granite'));
  const path = `${folder}.gguf`;
  const configPath = join(folder, 'config.json');
  const config = JSON.parse(readFileSync(configPath, 'utf8')) as Record<string, unknown>;
  const refused = async (changes: Record<string, unknown>): Promise<string> => {
    writeFileSync(configPath, JSON.stringify({ ...config, ...changes }));
    const { status, stderr } = await convert(folder, path);
    expect(status).not.toBe(0);
    expect(existsSync(path)).toBe(false);
    return stderr;
  };
  expect(await refused({ model_type: 'mamba' })).toMatch(
    /model_type "mamba" is not supported \(supported: llama, .*cohere2/,
  );
  expect(await refused({ hidden_act: 'relu' })).toMatch(/hidden_act "relu" is not supported \(supported: "silu"\)/);
  expect(await refused({ quantization_config: { bits: 4 } })).toMatch(/quantization_config/);
  expect(await refused({ num_key_value_heads: 4 })).toMatch(/6 heads over 4 key\/value heads/);
  expect(await refused({ intermediate_size: 128 })).toMatch(/is 160 x 96, config\.json implies 128 x 96/);
  expect(await refused({ num_hidden_layers: 3 })).toMatch(/"model\.layers\.2\.self_attn\.q_proj\.weight" is missing/);
  expect(await refused({ num_hidden_layers: 1 })).toMatch(/"model\.layers\.1\..*" does not belong in a granite model/);
  expect(await refused({ rope_scaling: { rope_type: 'dynamic' } })).toMatch(/rope scaling "dynamic" is not supported/);
  expect(await refused({ residual_multiplier: -1 })).toMatch(/residual_multiplier must be a positive number, got -1/);
  writeFileSync(configPath, '{');
  expect((await convert(folder, path)).stderr).toMatch(/config\.json is not valid JSON/);
  writeFileSync(configPath, JSON.stringify(config));
  expect((await convert(folder, join(folder, 'out.bin'))).stderr).toMatch(/must end with \.gguf/);
  expect((await convert(folder, path)).status).toBe(0);
  expect((await convert(folder, path)).stderr).toMatch(/exists; --force overwrites it/);
  rmSync(join(folder, 'model-00002-of-00002.safetensors'));
  expect((await convert(folder, path, '--force')).stderr).toMatch(
    /lists "model-00002-of-00002\.safetensors", which does not exist/,
  );
});
