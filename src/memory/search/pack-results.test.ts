import { expect, test } from 'vitest';
import { chunkToRecord, documentToRecord } from '../documents/document-records.ts';
import { nodeToRecord } from '../schemas/node.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import type { PutRecord } from '../types.ts';
import { packResults } from './pack-results.ts';
import { recordText } from './record-text.ts';

const T = 'acme';
const attributes = { tenant: T, topic: null, expiresMs: null };
const CHUNK_TEXTS = ['Zero is first.', 'One is second.', 'Two is third.', 'Three is fourth.'];

/** Two documents of four chunks, and a fact. */
async function setUp() {
  const services = createTestServices();
  const store = createTestStore(services);
  const putDocument = (name: string): { document: PutRecord; chunks: PutRecord[] } => {
    const documentId = services.newId();
    const chunks = CHUNK_TEXTS.map((text, index) => {
      const position = { documentId, name, index, start: index * 20, end: index * 20 + text.length, headings: [], startLine: index + 1, endLine: index + 1, startPage: null, endPage: null }; // prettier-ignore
      return chunkToRecord({ id: services.newId(), text: `${name}: ${text}`, position }, attributes, { vector: null, space: null }); // prettier-ignore
    });
    const body = { name, contentType: 'text/plain', hash: 'h', sizeBytes: 1, numChars: 1, numChunks: 4, numPages: null, isComplete: true, space: null, folder: null }; // prettier-ignore
    return { document: documentToRecord({ id: documentId, ...attributes }, body), chunks };
  };
  const [a, b] = [putDocument('a'), putDocument('b')];
  const fact = nodeToRecord({ id: services.newId(), kind: 'fact', text: 'a fact', source: null, topic: null, quality: null, metadata: {}, expiresMs: null, embedding: null, space: null }, T); // prettier-ignore
  await store.put([a.document, ...a.chunks, b.document, ...b.chunks, fact]);
  const pack = async (puts: readonly PutRecord[], tokenBudget = 10_000) => {
    const records = await store.get(T, puts.map(({ id }) => id)); // prettier-ignore
    const results = records.map((record) => ({ record: record!, text: recordText(record!) }));
    return packResults(store, T, results, { tokenBudget, countTokens: (text) => text.length });
  };
  return { pack, a, b, fact };
}
const shown = (name: string, ...indices: readonly number[]): string =>
  indices.map((index) => `${name}: ${CHUNK_TEXTS[index]!}`).join('\n  ');

test('[SE4] a chunk is shown with the ones before and after it, of its own document', async () => {
  const { pack, a, b, fact } = await setUp();
  expect((await pack([a.chunks[1]!])).text).toBe(`[1] a, lines 1–3\n  ${shown('a', 0, 1, 2)}\n`);
  expect((await pack([a.chunks[0]!])).text).toBe(`[1] a, lines 1–2\n  ${shown('a', 0, 1)}\n`);
  const { text } = await pack([fact, b.chunks[3]!, a.chunks[1]!]);
  expect(text).toBe(
    `[1] a fact\n[2] b, lines 3–4\n  ${shown('b', 2, 3)}\n[3] a, lines 1–3\n  ${shown('a', 0, 1, 2)}\n`,
  );
});

test('[SE4] the chunk after it comes before the one before it', async () => {
  const { pack, a } = await setUp();
  const text = `[1] a, lines 2–3\n  ${shown('a', 1, 2)}\n`;
  // The one before would fit, too.
  expect((await pack([a.chunks[1]!], text.length + 1)).text).toBe(text);
});

test('[SE4] the record of a document and texts without words are no sources', async () => {
  const { pack, a, fact } = await setUp();
  const empty = { ...fact, body: { text: '' } };
  expect((await pack([a.document])).sources).toEqual([]);
  const { sources } = await packResults({ find: () => Promise.reject(new Error('nothing to read')) }, T, [{ record: { ...empty, createdMs: 0, updatedMs: 0, version: 1 }, text: '' }], { tokenBudget: 100, countTokens: () => 1 }); // prettier-ignore
  expect(sources).toEqual([]);
});
