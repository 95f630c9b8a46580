// The memory in its thread, in the built package.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Memory } from '../src/memory/memory.ts';
import type { OpenMemoryOptions } from '../src/node/memory/open-memory.ts';
import { importDist } from './support/import-dist.ts';

const { openNodeMemory } =
  await importDist<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory.js');
const modelPath = join(import.meta.dirname, '../../shared/models/stories15M-q8_0.gguf');
const hasModel = existsSync(modelPath);
if (!hasModel) console.log('skipped: ../shared/models/stories15M-q8_0.gguf not found, no embedder');

let root: string;
const open: Memory[] = [];
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-memory-thread-'))));
afterEach(async () => {
  for (const memory of open.splice(0)) await memory.close().catch(() => {});
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const masterKey = { key: new Uint8Array(32).fill(9) };
async function openAt(name: string, options: Partial<OpenMemoryOptions> = {}): Promise<Memory> {
  const model = hasModel ? { modelPath } : {};
  const memory = await openNodeMemory({ place: join(root, name), masterKey, ...model, ...options });
  open.push(memory);
  return memory;
}

/** All bytes of all files below a folder. */
function everyByte(folder: string): Buffer {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  return Buffer.concat(files.filter((path) => statSync(path).isFile()).map((path) => readFileSync(path)));
}

test('rejects a folder in use, another key and a missing folder, each with its message', async () => {
  await openAt('refusals');
  await expect(openAt('refusals')).rejects.toMatchObject({ code: 'conflict' });
  await open.pop()!.close();
  const other = { masterKey: { key: new Uint8Array(32).fill(1) } };
  await expect(openAt('refusals', other)).rejects.toMatchObject({ code: 'invalid_option' });
  const inFile = join(root, 'refusals', 'memory.db', 'below');
  await expect(openAt('x', { place: inFile })).rejects.toThrow('memory.db');
  const away = { place: 'postgres://nobody:secret@127.0.0.1:1/x', whenUnreachable: 'fail' } as const;
  await expect(openAt('x', away)).rejects.toThrow(/^(?!.*secret)/);
});

test('without a model finds records by their properties and words, not by meaning', async () => {
  const memory = await openAt('no-model', { modelPath: null });
  const id = await memory.add('alice', { text: 'a fact', kind: 'fact', topic: 'facts' });
  expect(await memory.get('alice', id)).toMatchObject({ text: 'a fact', topic: 'facts', embedding: null });
  const { results } = await memory.search('alice', { text: 'the fact' });
  expect(results).toMatchObject([{ record: { id }, similarity: null, lexical: expect.any(Number) as number }]);
  expect((await memory.search('alice', { text: 'another statement' })).results).toEqual([]);
});

describe.skipIf(!hasModel)('with a model', () => {
  const texts = ['The cat slept on the mat.', 'A dog ran through the park.', 'The big red ball was lost.'];

  test('finds added texts by meaning, also after a restart, and only for their tenant', async () => {
    const first = await openAt('restart');
    for (const text of texts) await first.add('alice', { text });
    const query = { text: 'Where does the cat sleep?', k: 1 };
    expect((await first.search('alice', query)).results.map(({ text }) => text)).toEqual([texts[0]]);
    expect((await first.search('bob', query)).results).toEqual([]);
    await first.close();
    const second = await openAt('restart');
    expect((await second.search('alice', query)).results.map(({ text }) => text)).toEqual([texts[0]]);
    await second.store.checkIntegrity();
  });

  test('leaves no readable texts, names or vectors on disk', async () => {
    const memory = await openAt('canary');
    const canary = 'Xylophonquark';
    await memory.add(canary, { text: `a ${canary}`, source: canary, topic: canary, metadata: { [canary]: canary } });
    await memory.sessions.addTurn(canary, `session-${canary}`, { query: canary, answer: canary });
    void memory.audit.enqueue(canary, {
      requestId: crypto.randomUUID(),
      sessionId: canary,
      timestampMs: Date.now(),
      model: canary,
      routing: null,
      quality: 0.5,
      latency: { embeddingMs: 0, retrievalMs: 0, routingMs: 0, generationMs: 1, totalMs: 1, ttftMs: 1 },
      contextDocIds: [],
      query: canary,
      response: canary,
      numPromptTokens: 1,
      numOutputTokens: 1,
      queryEmbedding: null,
      responseEmbedding: null,
      space: null,
      error: { code: canary, message: canary, isRetryable: false },
    });
    await memory.audit.flush();
    const { vector } = (await memory.embed(`a ${canary}`))!;
    await memory.search(canary, { text: canary, k: 5 }); // Creates the index.
    await memory.close(); // Saves it.
    const bytes = everyByte(join(root, 'canary'));
    expect(bytes.length).toBeGreaterThan(100_000);
    expect(readdirSync(join(root, 'canary'))).toContain('vectors');
    for (const encoding of ['utf8', 'utf16le'] as const) {
      expect(bytes.includes(Buffer.from(canary, encoding)), encoding).toBe(false);
      expect(bytes.includes(Buffer.from(canary.toLowerCase(), encoding)), encoding).toBe(false);
    }
    const floats = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
    for (let at = 0; at < floats.length; at += 256) expect(bytes.includes(floats.subarray(at, at + 32))).toBe(false);
  });

  test('an erased tenant is gone and returns as a new one', async () => {
    const memory = await openAt('erase');
    for (const tenant of ['alice', 'bob']) await memory.add(tenant, { text: texts[0]! });
    await memory.sessions.addTurn('alice', 's', { query: 'q', answer: 'a' });
    await memory.search('alice', { text: 'cat' });
    await memory.erase({ tenant: 'alice' });
    expect((await memory.search('alice', { text: 'cat' })).results).toEqual([]);
    expect(await memory.sessions.get('alice', 's')).toBeNull();
    expect((await memory.search('bob', { text: 'cat' })).results).toHaveLength(1);
    await memory.add('alice', { text: texts[1]! });
    expect((await memory.search('alice', { text: 'cat' })).results.map(({ text }) => text)).toEqual([texts[1]]);
    await memory.store.checkIntegrity();
  });

  test('opens an index from disk, and rebuilds and reports a damaged one', async () => {
    const folder = join(root, 'damage');
    const first = await openAt('damage');
    for (const text of texts) await first.add('alice', { text });
    await first.search('alice', { text: 'cat' });
    await first.close();
    const vectors = join(folder, 'vectors');
    const path = readdirSync(vectors, { recursive: true, encoding: 'utf8' })
      .map((name) => join(vectors, name))
      .find((one) => statSync(one).isFile())!;
    const bytes = readFileSync(path);
    for (let at = 1000; at < bytes.length; at += 4096) bytes[at]! ^= 1;
    writeFileSync(path, bytes);
    const reports: string[] = [];
    const second = await openAt('damage', { report: (message) => void reports.push(message) });
    const { results } = await second.search('alice', { text: 'Where does the cat sleep?', k: 1 });
    expect(results.map(({ text }) => text)).toEqual([texts[0]]);
    expect(reports).toEqual([expect.stringContaining('vector index cannot be read and is rebuilt')]);
  });
});
