import { beforeEach, describe, expect, test } from 'vitest';
import { openTestMemory, type TestMemory, wordEmbedder } from '../../../test/support/test-memory.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../memory.ts';
import { createReindex } from '../reindex.ts';
import { createInMemoryStore } from '../store/in-memory/in-memory-store.ts';
import { wrapStore } from '../test-store.contract.ts';
import { divideDocument } from './divide-document.ts';

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

test('documents that are added together hold their thread for one piece of work at a time', async () => {
  const spin = (ms: number): void => {
    for (const end = performance.now() + ms; performance.now() < end;);
  };
  const embed = (text: string) => {
    spin(1);
    return wordEmbedder.embed(text);
  };
  const slow = await openTestMemory({ embedder: { ...wordEmbedder, embed } });
  let [numTurns, isOver] = [0, false];
  const turn = (): void => {
    numTurns++;
    if (!isOver) setTimeout(turn, 0);
  };
  turn();
  const texts = ['a', 'b', 'c', 'd'].map((topic) => filler(topic, 200));
  const added = await Promise.all(texts.map((text, i) => add(text, slow, `${i}.md`)));
  isOver = true;
  const numChunks = added.reduce((sum, one) => sum + one.numAdded, 0);
  expect(numChunks).toBeGreaterThan(40);
  // A piece is 4 ms, and each chunk takes 1 ms; busy machines make it less certain when a piece ends.
  expect(numTurns).toBeGreaterThan(numChunks / 8);
});

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
    const most = await divideDocument({ name: 'large.md', content: sections.slice(0, sections.lastIndexOf('#')) });
    expect(most.chunks).toHaveLength(10_000);
    const chars = await refused('huge.txt', 'words '.repeat(1_500_000));
    expect([chars.code, chars.message]).toEqual(['limit_exceeded', expect.stringMatching(/9000000.*8388608/)]);
  });
});

describe('[DC2] a document that is added again', () => {
  const versions = async (id: string): Promise<Record<string, number>> => {
    const chunks = await memory.documents.chunks(TENANT, id);
    const records = await memory.store.get(TENANT, chunks.map((chunk) => chunk.id)); // prettier-ignore
    return Object.fromEntries(records.map((record, i) => [chunks[i]!.headings.at(-1), record!.version]));
  };
  const put = (more: object = {}, content: string | Uint8Array = '# One\n\nfirst\n\n# Two\n\nsecond') =>
    memory.documents.add(TENANT, { name: 'a.md', content, ...more });

  test('has the size of its bytes, the same as text', async () => {
    const text = '# Größe\n\nwörtlich';
    const { id } = await put({}, text);
    expect(await memory.documents.get(TENANT, id)).toMatchObject({ sizeBytes: 20, numChars: 17, numChunks: 1, isComplete: true, topic: null, expiresMs: null, folder: null }); // prettier-ignore
    expect(await put({}, new TextEncoder().encode(text))).toMatchObject({ isUnchanged: true });
    expect(await memory.documents.get(TENANT, id)).toMatchObject({ sizeBytes: 20 });
  });

  test.each([
    [{ topic: 'a' }, { topic: 'b' }],
    [{ topic: 'a' }, {}],
    [{ expiresMs: 5_000_000_000_000 }, { expiresMs: 6_000_000_000_000 }],
    [{ expiresMs: 5_000_000_000_000 }, {}],
    [{ folder: '/a' }, {}],
    [{}, { contentType: 'text/markdown' }],
  ])('with %j and then %j changes its records, and embeds nothing', async (first, second) => {
    const { id } = await put(first);
    expect(await put(first)).toMatchObject({ isUnchanged: true });
    numEmbedded = 0;
    expect(await put(second)).toMatchObject({ isUnchanged: false, numAdded: 0, numKept: 2, numRemoved: 0 });
    const { contentType: _, ...shown } = { topic: null, expiresMs: null, folder: null, contentType: '', ...second };
    expect(await memory.documents.get(TENANT, id)).toMatchObject(shown);
    const chunks = await memory.documents.chunks(TENANT, id);
    for (const record of await memory.store.get(TENANT, chunks.map((chunk) => chunk.id))) {
      expect([record!.fields['topic'] ?? null, record!.expiresMs]).toEqual([shown.topic, shown.expiresMs]);
    } // prettier-ignore
    expect([numEmbedded, await put(second)]).toMatchObject([0, { isUnchanged: true }]);
  });

  test.each([{}, { topic: 'a', expiresMs: 5_000_000_000_000 }])(
    'with %j writes the chunks that have changed only',
    async (more) => {
      const { id } = await put(more);
      const before = await versions(id);
      await put(more, '# One\n\nfirst\n\n# Two\n\nchanged\n\n# Six\n\nthird');
      const after = await versions(id);
      expect([after['One'], Object.keys(after)]).toEqual([before['One'], ['One', 'Two', 'Six']]);
    },
  );

  test('keeps a chunk without words, which no embedder can embed', async () => {
    const embed = (text: string) => {
      if (text.includes('***')) throw new RuvLLMError('invalid_text', 'no tokens');
      return wordEmbedder.embed(text);
    };
    memory = await openTestMemory({ embedder: { ...wordEmbedder, embed } });
    await put({}, '# One\n\nfirst\n\n# Two\n\n***');
    expect(await put({}, '# One\n\nchanged\n\n# Two\n\n***')).toMatchObject({ numAdded: 1, numKept: 1 });
  });

  test('has a chunk for each of its equal parts', async () => {
    const parts = '# One\n\nthe same\n\n# Two\n\nthe same\n\n';
    const { id, numChunks } = await put({}, parts.repeat(4));
    expect(numChunks).toBe(8);
    expect(await put({}, parts.repeat(3))).toMatchObject({ numChunks: 6, numKept: 6, numRemoved: 2 });
    expect(await memory.documents.chunks(TENANT, id)).toHaveLength(6);
  });
});

describe('[DC1] the calls of the store', () => {
  const sections = (count: number): string => Array.from({ length: count }, (_, i) => `# S${i}\n\nw`).join('\n\n');
  const calls: [string, unknown][] = [];
  async function open() {
    calls.length = 0;
    const store = wrapStore(createInMemoryStore({ now: Date.now }));
    memory = await openTestMemory({ store, embedder: null });
    store.onCall = (operation, argument) => void calls.push([operation, argument]);
    return store;
  }
  /** After the first text without a vector, before which a memory forgets that an embedder has looked at all records. */
  async function openWithText() {
    const store = await open();
    await add('w', memory, 'other.md');
    calls.length = 0;
    return store;
  }
  /** Without those of the list of tenants. */
  const numOf = (operation: string): number =>
    calls.filter(([one, argument]) => one === operation && !JSON.stringify(argument).includes('"kind":"state"')).length;

  test('are one for a new document of up to 500 chunks; its edges are not looked for', async () => {
    await openWithText();
    const { id } = await add(sections(500));
    expect([numOf('put'), numOf('edgesOf'), numOf('deleteEdges'), numOf('delete')]).toEqual([1, 0, 0, 0]);
    expect(await memory.documents.get(TENANT, id)).toMatchObject({ numChunks: 500, isComplete: true });
    await open();
    await add(sections(501));
    expect(numOf('put')).toBe(4); // the incomplete document, two parts, the complete document
  });

  test('forget only once that an embedder has looked at all records, however many chunks come at once', async () => {
    await open();
    await add(sections(100));
    expect(numOf('delete')).toBe(1);
  });

  test('delete no edges where none is old', async () => {
    await open();
    await add(sections(2));
    await add(`${sections(2)} more`);
    expect([numOf('edgesOf') > 0, numOf('deleteEdges')]).toEqual([true, 0]);
  });

  test('that fail half-way leave an incomplete document, which the next one completes', async () => {
    const store = await open();
    const { id } = await add(sections(3));
    store.onCall = (operation) => {
      if (operation === 'delete') throw new RuvLLMError('io', 'the disk is gone');
    };
    await expect(add(sections(2))).rejects.toThrow('the disk is gone');
    expect(await memory.documents.get(TENANT, id)).toMatchObject({ numChunks: 2, isComplete: false });
    store.onCall = () => {};
    expect(await add(sections(2))).toMatchObject({ isUnchanged: false, numChunks: 2, numRemoved: 1 });
    expect(await memory.documents.get(TENANT, id)).toMatchObject({ isComplete: true });
    expect(await add(sections(2))).toMatchObject({ isUnchanged: true });
  });

  test('remove nothing that somebody else has removed', async () => {
    const store = await open();
    const { id } = await add(sections(1));
    store.onCall = async (operation, ids) => {
      if (operation !== 'delete' || !(ids as string[]).includes(id)) return;
      store.onCall = () => {};
      await store.delete(TENANT, [id]);
    };
    expect(await memory.documents.remove(TENANT, id)).toBe(false);
  });
});

test('[DC3] documents are listed page by page, until they expire', async () => {
  let nowMs = 1_000_000;
  memory = await openTestMemory({ now: () => nowMs });
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    nowMs += 1;
    ids.push((await memory.documents.add(TENANT, { name, content: name, topic: `about ${name}`, expiresMs: name === 'b' ? 2_000_000 : 3_000_000 })).id); // prettier-ignore
  }
  const pages: string[][] = [];
  let after: string | undefined;
  do {
    const { documents, next } = await memory.documents.list(TENANT, { limit: 2, ...(after === undefined ? {} : { after }) }); // prettier-ignore
    pages.push(documents.map(({ topic }) => topic!));
    after = next ?? undefined;
  } while (after !== undefined);
  expect(pages).toEqual([['about c', 'about b'], ['about a']]);
  const shown = async () => [(await memory.documents.get(TENANT, ids[1]!)) !== null, (await memory.documents.list(TENANT, { limit: 10 })).documents.length]; // prettier-ignore
  nowMs = 1_999_999;
  expect(await shown()).toEqual([true, 3]);
  nowMs = 2_000_000;
  expect(await shown()).toEqual([false, 2]);
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
