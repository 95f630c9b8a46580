import { beforeEach, describe, expect, test } from 'vitest';
import { openTestMemory, type TestMemory, wordEmbedder } from '../../../test/support/test-memory.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../memory.ts';
import { createReindex } from '../reindex.ts';

const TENANT = 'alice';
let memory: TestMemory;
let numEmbedded: number;
beforeEach(async () => {
  numEmbedded = 0;
  const embed = (text: string) => {
    numEmbedded++;
    return wordEmbedder.embed(text);
  };
  memory = await openTestMemory({ embedder: { ...wordEmbedder, embed } });
});

const filler = (topic: string, count: number): string =>
  Array.from({ length: count }, (_, i) => `Sentence ${i} about ${topic} says little that is new.`).join(' ');
const HANDBOOK = `# Handbook

${filler('welcome', 30)}

## Opening hours

The library opens at nine and closes at six.

## Parking

${filler('parking', 60)}

| place | price |
| --- | --- |
| north | 2 |
`;

const add = (text: string, target: Memory = memory, name = 'handbook.md') =>
  target.documents.add(TENANT, { name, content: new TextEncoder().encode(text) });

async function stateOf(id: string) {
  const chunks = await memory.documents.chunks(TENANT, id);
  const edges = await memory.store.edgesOf(TENANT, { ids: [id, ...chunks.map((one) => one.id)], direction: 'both', limit: 10_000 }); // prettier-ignore
  return { chunks, edges: edges.map(({ from, to, relation }) => [from, relation, to]) };
}

describe('[DC1] a document', () => {
  test('is a record without a vector and chunks with vectors, linked in order', async () => {
    const { id, numChunks, numAdded } = await add(HANDBOOK);
    const { chunks, edges } = await stateOf(id);
    expect(chunks.length).toBe(numChunks);
    expect(numAdded).toBe(numChunks);
    expect(numChunks).toBeGreaterThan(4);
    const records = await memory.store.get(TENANT, [id, ...chunks.map((chunk) => chunk.id)]);
    expect(records.map((record) => record!.vector === null)).toEqual([true, ...chunks.map(() => false)]);
    for (const [i, chunk] of chunks.entries()) {
      expect(chunk.index).toBe(i);
      expect(edges).toContainEqual([id, 'contains', chunk.id]);
      if (i > 0) expect(edges).toContainEqual([chunk.id, 'follows', chunks[i - 1]!.id]);
    }
    expect(edges).toHaveLength(2 * numChunks - 1);
  });

  test('has chunks at their positions, with headings, and none is lost', async () => {
    const { id } = await add(HANDBOOK);
    const { chunks } = await stateOf(id);
    const lines = HANDBOOK.split('\n');
    let end = 0;
    for (const chunk of chunks) {
      expect(HANDBOOK.slice(chunk.start, chunk.end)).toBe(chunk.text);
      expect(HANDBOOK.slice(end, Math.max(end, chunk.start)).trim()).toBe('');
      expect(lines.slice(chunk.startLine! - 1, chunk.endLine!).join('\n')).toContain(chunk.text);
      end = chunk.end;
    }
    expect(HANDBOOK.slice(end).trim()).toBe('');
    const hours = chunks.find(({ text }) => text.includes('opens at nine'))!;
    expect(hours).toMatchObject({ headings: ['Handbook', 'Opening hours'], startLine: 5, endLine: 7, startPage: null });
    const parking = chunks.filter(({ headings }) => headings[1] === 'Parking');
    expect(parking.length).toBeGreaterThan(2);
    // Parts of one section overlap.
    expect(parking[1]!.start).toBeLessThan(parking[0]!.end);
  });

  test('is found by a question about one passage', async () => {
    const { id } = await add(HANDBOOK);
    const { results } = await memory.search(TENANT, { text: 'When does the library open? Opening hours', k: 1 });
    expect(results[0]!.record.fields).toMatchObject({ documentId: id });
    expect(results[0]!.text).toContain('opens at nine');
  });
});

describe('[DC2] adding again', () => {
  test('changes nothing when the content is the same', async () => {
    const first = await add(HANDBOOK);
    const before = await memory.store.get(TENANT, [first.id]);
    numEmbedded = 0;
    expect(await add(HANDBOOK)).toMatchObject({ numAdded: 0, numRemoved: 0, isUnchanged: true });
    expect(numEmbedded).toBe(0);
    expect((await memory.store.get(TENANT, [first.id]))[0]!.version).toBe(before[0]!.version);
  });

  test('embeds only changed chunks, moves the others and removes the old ones', async () => {
    const first = await add(HANDBOOK);
    const before = (await stateOf(first.id)).chunks;
    numEmbedded = 0;
    const changed = HANDBOOK.replace('The library opens at nine', 'On Sundays the library opens at ten');
    const second = await add(changed);
    expect(second).toMatchObject({ id: first.id, numAdded: 1, numRemoved: 1, numKept: before.length - 1 });
    expect(numEmbedded).toBe(1);
    const { chunks, edges } = await stateOf(first.id);
    for (const chunk of chunks) expect(changed.slice(chunk.start, chunk.end)).toBe(chunk.text);
    expect(edges).toHaveLength(2 * chunks.length - 1);
    const old = before.find(({ text }) => text.includes('opens at nine'))!;
    expect(await memory.store.get(TENANT, [old.id])).toEqual([null]);
  });

  test('embeds a document again when the embedder is another one, and not what has no words', async () => {
    const store = memory.store;
    const silent = (text: string) => {
      if (text.includes('***')) throw new RuvLLMError('invalid_text', 'no tokens');
      return wordEmbedder.embed(text);
    };
    const open = (fingerprint: string | null) =>
      openTestMemory({
        store,
        embedder: fingerprint === null ? null : { ...wordEmbedder, fingerprint, embed: silent },
      });
    const text = '# One\n\nwords\n\n# Two\n\n***';
    const first = await open('words-a');
    expect(await add(text, first)).toMatchObject({ numChunks: 2, numAdded: 2 });
    expect(await add(text, first)).toMatchObject({ isUnchanged: true });
    const second = await open('words-b');
    expect(await add(text, second)).toMatchObject({ numAdded: 2 });
    expect(await add(text, second)).toMatchObject({ isUnchanged: true });
    // [SE14] Without an embedder the vectors stay; what is new gets one with the embedder.
    const none = await open(null);
    expect(await add(text, none)).toMatchObject({ isUnchanged: true });
    expect(await add(`${text}\n\n# Three\n\nmore`, none)).toMatchObject({ numAdded: 1, numKept: 2 });
    expect(await add(`${text}\n\n# Three\n\nmore`, await open('words-b'))).toMatchObject({ numAdded: 2, numKept: 1 });
  });

  test('leaves no edge of the old order', async () => {
    const part = (name: string): string => `# ${name}\n\n${filler(name, 14)}\n\n`;
    const { id } = await add(part('one') + part('two') + part('three'));
    await add(part('three') + part('one') + part('two'));
    const { chunks, edges } = await stateOf(id);
    const follows = edges.filter(([, relation]) => relation === 'follows');
    expect(follows).toHaveLength(chunks.length - 1);
    for (let i = 1; i < chunks.length; i++)
      expect(follows).toContainEqual([chunks[i]!.id, 'follows', chunks[i - 1]!.id]);
  });

  test('one after the other when called at once', async () => {
    const results = await Promise.all([add(HANDBOOK), add(HANDBOOK), add(`${HANDBOOK}\n\nThe end.`)]);
    const { chunks } = await stateOf(results[0]!.id);
    expect(chunks.map(({ index }) => index)).toEqual(chunks.map((_, i) => i));
    expect(chunks.at(-1)!.text).toContain('The end.');
  });
});

describe('[DC3] removing', () => {
  test('deletes the chunks, the record and their edges, and nothing else', async () => {
    const { id } = await add(HANDBOOK);
    const other = await add(HANDBOOK, memory, 'other.md');
    expect(await memory.documents.remove(TENANT, id)).toBe(true);
    expect(await memory.documents.remove(TENANT, id)).toBe(false);
    expect(await stateOf(id)).toEqual({ chunks: [], edges: [] });
    expect(await memory.documents.chunks(TENANT, other.id)).toHaveLength(other.numChunks);
    const { documents } = await memory.documents.list(TENANT, { limit: 10 });
    expect(documents.map(({ name }) => name)).toEqual(['other.md']);
  });

  test('of missing files affects their folder only', async () => {
    const inFolder = (folder: string, name: string) => memory.documents.add(TENANT, { name, content: 'words', folder });
    await inFolder('/a', 'a/one.md');
    await inFolder('/a', 'a/two.md');
    await inFolder('/b', 'b/one.md');
    await memory.add(TENANT, { text: 'a plain text' });
    expect(await memory.documents.removeMissing(TENANT, '/a', ['a/two.md'])).toEqual(['a/one.md']);
    const { documents } = await memory.documents.list(TENANT, { limit: 10 });
    expect(documents.map(({ name }) => name).toSorted()).toEqual(['a/two.md', 'b/one.md']);
  });
});

test('[DC3] a text whose metadata looks like that of a document is none, and stays a text', async () => {
  const metadata = { document: { name: 'x' }, chunk: { index: 0 } };
  const id = await memory.add(TENANT, { text: 'a plain text', metadata });
  expect((await memory.documents.list(TENANT, { limit: 10 })).documents).toEqual([]);
  expect(await memory.documents.get(TENANT, id)).toBeNull();
  const { results, context } = await memory.search(TENANT, { text: 'plain text', tokenBudget: 50 });
  expect([results[0]!.record.id, context!.sources[0]!.id]).toEqual([id, id]);
});

describe('[DC4] refuses', () => {
  const refused = async (name: string, content: Uint8Array | string, contentType?: string) => {
    const more = contentType === undefined ? {} : { contentType };
    const error: unknown = await memory.documents.add(TENANT, { name, content, ...more }).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(await memory.store.count(TENANT, { kinds: ['document'] })).toBe(0);
    return error as { code: string; message: string };
  };
  test.each([
    ['empty.md', '', 'invalid_text', '0 bytes'],
    ['blank.txt', ' \n\n ', 'invalid_text', 'no text'],
    ['latin1.txt', Uint8Array.of(0x61, 0xe4, 0x62), 'invalid_text', 'UTF-8'],
    ['junk.txt', Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0, 1, 2), 'invalid_text', 'byte 4'],
    ['a.pdf', Uint8Array.of(1, 2, 3, 4), 'invalid_text', '%PDF-'],
    ['big.txt', new Uint8Array((32 << 20) + 1).fill(97), 'limit_exceeded', '33554432'],
    ['x'.repeat(257), 'text', 'invalid_option', 'name'],
  ])('%s with numbers, and writes nothing', async (name, content, code, says) => {
    const error = await refused(name, content);
    expect([error.code, error.message]).toEqual([code, expect.stringContaining(says)]);
  });

  test('a type that is no text', async () => {
    const error = await refused('a', Uint8Array.of(97), 'image/png');
    expect(error).toMatchObject({ code: 'unsupported' });
    expect(error.message).toContain('image/png');
  });

  test('more chunks or characters than the limits', async () => {
    const sections = Array.from({ length: 10_001 }, (_, i) => `# Section ${i}\n\nwords`).join('\n\n');
    const chunks = await refused('huge.md', sections);
    expect([chunks.code, chunks.message]).toEqual(['limit_exceeded', expect.stringMatching(/10001 chunks.*10000/)]);
    const chars = await refused('huge.txt', 'words '.repeat(1_500_000));
    expect([chars.code, chars.message]).toEqual(['limit_exceeded', expect.stringMatching(/9000000.*8388608/)]);
  });
});

test('[DC5] an edit at the start of a long text changes the first chunks only', async () => {
  const text = Array.from({ length: 400 }, (_, i) => filler(`subject ${i}`, 2)).join('\n\n');
  const { numChunks } = await add(text, memory, 'long.txt');
  const { numAdded } = await add(`A new beginning, of twelve words or more than that.\n\n${text}`, memory, 'long.txt');
  expect(numChunks).toBeGreaterThan(40);
  expect(numAdded).toBeLessThan(numChunks / 4);
});

test('[DC1] embedding again keeps headings in the vectors and gives the document none', async () => {
  const { id } = await add(HANDBOOK);
  const texts: string[] = [];
  const embed = (text: string) => {
    texts.push(text);
    return wordEmbedder.embed(text);
  };
  const embedder = { ...wordEmbedder, fingerprint: 'words-2', embed };
  const { store, services } = memory;
  const reindex = createReindex({
    store,
    services,
    schedule: () => () => {},
    foreground: { turn: async () => {}, isQuiet: () => true, release() {}, run: (work) => work() },
    embedder,
    tenants: () => [TENANT],
    isDegraded: () => false,
    report() {},
  });
  await reindex.run();
  expect(texts.some((text) => text.startsWith('Handbook › Opening hours\n'))).toBe(true);
  const [record] = await store.get(TENANT, [id]);
  expect(record!.vector).toBeNull();
  await reindex.stop();
});
