// Checkpoints of every architecture become the model files that hold the same weights.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createMemorySource } from '../src/core/byte-source.ts';
import { convertibleModelTypes, type GgufFile, openGguf } from '../src/gguf/index.ts';
import { architectures } from '../src/models/registry.ts';
import { convertFolder } from '../src/node/convert-folder.ts';
import { quantizeFile } from '../src/node/quantize/quantize-file.ts';
import { afterRounding, writeHfFolder } from './support/hf-folder.ts';
import { buildHfModel, HF_KINDS, HF_MODELS } from './support/hf-models.ts';
import { continueGreedily, loadBytes } from './support/run-model.ts';
import { tokenizerModel } from './support/tokenizer-model.ts';
import { createTemporaryRoot } from './support/temporary-root.ts';

const root = createTemporaryRoot('ruvllm-convert-');
const open = (bytes: Uint8Array): GgufFile => openGguf(createMemorySource(bytes));

function bytesOf(gguf: GgufFile, name: string): Buffer {
  const tensor = gguf.tensor(name);
  const bytes = Buffer.alloc(tensor.sizeBytes);
  gguf.readTensor(tensor, bytes);
  return bytes;
}

async function generate(bytes: Uint8Array, numTokens = 3): Promise<{ tokens: number[]; promptLogits: Float32Array[] }> {
  const model = await loadBytes(bytes, { maxContextTokens: 64 });
  const result = await continueGreedily(model, [1, 40, 77, 9, 120, 260], numTokens, [2]);
  await model.dispose();
  return result;
}

test.each(Object.keys(HF_KINDS))('%s: a checkpoint becomes the file that holds the same weights', async (title) => {
  const kind = HF_KINDS[title]!;
  const original = buildHfModel(title);
  const expectedBytes = afterRounding(original, kind);
  const folder = root.newFolder();
  writeHfFolder(folder, original, kind);
  writeFileSync(join(folder, 'tokenizer.model'), tokenizerModel(320));
  const path = `${folder}.gguf`;
  const expected = open(expectedBytes);
  const architecture = expected.metadata.string('general.architecture');
  expect(convertFolder({ folder, path, type: 'F32' })).toMatchObject({ architecture, hasTokenizer: true });
  const convertedBytes = readFileSync(path);
  const converted = open(convertedBytes);
  expect([...converted.tensors.keys()].toSorted()).toEqual([...expected.tensors.keys()].toSorted());
  for (const { name, dims, type } of expected.tensors.values()) {
    expect({ name, ...pick(converted.tensor(name)) }).toEqual({ name, dims, type });
    expect(bytesOf(converted, name).equals(bytesOf(expected, name)), name).toBe(true);
  }
  // Norms of another kind are in every random file; the token for unknown text is in no file of the folder.
  const usesLayerNorm = kind.epsilonName === 'layer_norm_eps' || kind.epsilonName === 'norm_epsilon';
  const unused = [usesLayerNorm ? 'layer_norm_rms_epsilon' : 'layer_norm_epsilon', 'unknown_token_id', 'general.name'];
  for (const { key, value } of expected.entries) {
    if (unused.some((name) => key.endsWith(name))) continue;
    const known = typeof value === 'number' ? Math.fround(value) : value;
    const written = converted.metadata.get(key);
    expect(typeof written === 'number' ? Math.fround(written) : written, key).toEqual(known);
  }
  expect(await generate(convertedBytes)).toEqual(await generate(expectedBytes));
  const quantizedPath = `${folder}-q8.gguf`;
  const options = { imatrix: null, method: 'round', calibration: null, comparison: null } as const;
  const { types } = await quantizeFile({ sourcePath: folder, path: quantizedPath, type: 'Q8_0', ...options });
  expect(types['Q8_0']!.numTensors).toBeGreaterThan(8);
  const quantizedBytes = readFileSync(quantizedPath);
  expect(floatTensors(open(quantizedBytes))).toEqual(floatTensors(open(buildHfModel(title, 'Q8_0'))));
  const { promptLogits } = await generate(quantizedBytes, 0);
  expect(promptLogits.flatMap((row) => [...row]).every(Number.isFinite)).toBe(true);
});

const floatTensors = ({ tensors }: GgufFile): string[] =>
  [...tensors.values()].flatMap(({ name, type }) => (type === 'F32' ? [name] : [])).toSorted();

const pick = ({ dims, type }: { dims: readonly number[]; type: string }) => ({ dims, type });

test('covers every decoder', () => {
  const covered = Object.keys(HF_KINDS).map((title) => HF_MODELS[title]?.architecture ?? title);
  // BERT has a test of its own.
  expect([...architectures.keys()].filter((name) => name !== 'bert' && !covered.includes(name as never))).toEqual([]);
});

test('the guide lists every kind of checkpoint', () => {
  const guide = readFileSync(new URL('../docs/convert.md', import.meta.url), 'utf8');
  const words = new Set(guide.match(/\w+/g));
  expect(convertibleModelTypes.filter((type) => !words.has(type))).toEqual([]);
});
