import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { inverseFrequency, maxTermScore, termScore } from './bm25.ts';
import { createLexicalIndex, type LexicalIndex } from './lexical-index.ts';
import { searchLexical } from './search-lexical.ts';
import { decodeSnapshot, encodeSnapshot } from './snapshot-bytes.ts';

const search = (index: LexicalIndex, text: string) => searchLexical([{ index, filter: null }], { text }, 20);

test('after many changes, and from its bytes, an index is as one that is built anew', () => {
  const random = createRandom(3);
  const word = (): string => `w${Math.floor(60 * random.next() ** 2)}`;
  const index = createLexicalIndex();
  const texts = new Map<number, string>();
  for (let i = 0; i < 6000; i++) {
    const row = Math.floor(800 * random.next());
    if (random.next() < 0.3) {
      expect(index.delete(row)).toBe(texts.delete(row));
      continue;
    }
    const text = Array.from({ length: 1 + Math.floor(20 * random.next()) }, word).join(' ');
    texts.set(row, text);
    index.set(row, text);
  }
  const fresh = createLexicalIndex();
  for (const [row, text] of texts) fresh.set(row, text);
  const { snapshot, seq } = decodeSnapshot(encodeSnapshot({ snapshot: index.snapshot(), seq: 2 ** 40 + 1 }))!;
  const restored = createLexicalIndex(snapshot);
  expect(seq).toBe(2 ** 40 + 1);
  for (const one of [index, restored]) {
    expect([one.size, one.numTerms]).toEqual([fresh.size, fresh.numTerms]);
    for (const query of ['w1', 'w0 w5 w40', 'w59 w58 w2 nothing']) {
      const scores = new Map(search(fresh, query).map(({ row, score }) => [row, score]));
      const found = search(one, query);
      expect(found.map(({ row }) => row)).toEqual([...scores.keys()]);
      for (const { row, score } of found) expect(score).toBeCloseTo(scores.get(row)!, 12);
    }
  }
});

test('the best are those of a full scan, also where common terms are skipped', () => {
  const random = createRandom(7);
  const index = createLexicalIndex();
  const texts = Array.from({ length: 3000 }, (_, row) => {
    const text = Array.from({ length: 5 + (row % 30) }, () => `w${Math.floor(900 * random.next() ** 3)}`).join(' ');
    index.set(row, text);
    const words = text.split(' ');
    const frequencies = new Map<string, number>();
    for (const one of words) frequencies.set(one, (frequencies.get(one) ?? 0) + 1);
    return { length: words.length, frequencies };
  });
  const average = texts.reduce((sum, { length }) => sum + length, 0) / texts.length;
  const isEven = { has: (row: number): boolean => row % 2 === 0 };
  for (let i = 0; i < 40; i++) {
    const words = Array.from({ length: 1 + (i % 12) }, () => `w${Math.floor(900 * random.next() ** 3)}`);
    const idfOf = (word: string): number => inverseFrequency(texts.length, texts.filter(({ frequencies }) => frequencies.has(word)).length); // prettier-ignore
    const idfs = new Map(words.map((word) => [word, idfOf(word)]));
    const most = [...idfs.values()].reduce((sum, idf) => sum + maxTermScore(idf), 0);
    for (const filter of [null, isEven]) {
      const scores = texts
        .map(({ length, frequencies }, row) => {
          if (filter?.has(row) === false) return 0;
          let score = 0;
          for (const [word, idf] of idfs) {
            const frequency = frequencies.get(word);
            if (frequency !== undefined) score += termScore(idf, frequency, length / average);
          }
          return score;
        })
        .filter((score) => score > 0)
        .sort((a, b) => b - a);
      const found = searchLexical([{ index, filter }], { text: words.join(' ') }, 10);
      expect(found).toHaveLength(Math.min(10, scores.length));
      found.forEach(({ score }, at) => expect(score).toBeCloseTo(scores[at]! / most, 9));
    }
  }
});

test('bytes of another version or length are not read', () => {
  const bytes = encodeSnapshot({ snapshot: createLexicalIndex().snapshot(), seq: 1 });
  expect(decodeSnapshot(bytes)).not.toBeNull();
  expect(decodeSnapshot(bytes.slice(0, -1))).toBeNull();
  const other = bytes.slice();
  new DataView(other.buffer).setFloat64(0, 99, true);
  expect(decodeSnapshot(other)).toBeNull();
});

test('bytes that begin within a buffer are read, bytes without a whole header are not', () => {
  const index = createLexicalIndex();
  index.set(7, 'a heron');
  const bytes = encodeSnapshot({ snapshot: index.snapshot(), seq: 4 });
  const larger = new Uint8Array(bytes.length + 16);
  larger.set(bytes, 3);
  expect(decodeSnapshot(larger.subarray(3, 3 + bytes.length))).toEqual(decodeSnapshot(bytes));
  expect(decodeSnapshot(bytes)!.snapshot).toMatchObject({ terms: ['a', 'heron'], rows: Float64Array.of(7) });
  expect(decodeSnapshot(bytes.slice(0, 39))).toBeNull();
});

test('only texts with a term of the query are found, at equal scores those of the lowest rows', () => {
  const index = createLexicalIndex();
  index.set(9, 'an owl');
  for (const row of [5, 3, 4]) index.set(row, 'a heron');
  index.set(2, 'another heron');
  index.delete(2);
  expect(search(index, 'heron').map(({ row }) => row)).toEqual([3, 4, 5]);
  expect(searchLexical([{ index, filter: null }], { text: 'heron' }, 1).map(({ row }) => row)).toEqual([3]);
  expect(search(index, 'another')).toEqual([]);
  expect(search(createLexicalIndex(), 'heron')).toEqual([]);
});

test('a snapshot has no terms whose texts are all deleted', () => {
  const index = createLexicalIndex();
  index.set(1, 'heron lake');
  index.set(2, 'heron sea');
  expect(index.delete(1)).toBe(true);
  expect(index.delete(1)).toBe(false);
  expect(index.snapshot()).toEqual({
    terms: ['heron', 'sea'],
    rows: Float64Array.of(2),
    lengths: Uint32Array.of(2),
    counts: Uint32Array.of(2),
    postings: Uint32Array.of(0x0_01, 0x1_01),
  });
});

test.each([
  ['1000 texts, if few are left', 10, 1001],
  ['a fifth of all texts, if many are left', 5200, 1301],
])('the memory of deleted texts is given back after more than %s', (_name, numLeft, numDeleted) => {
  const index = createLexicalIndex();
  const numTexts = numLeft + numDeleted - 1;
  for (let row = 0; row < numTexts; row++) index.set(row, 'a');
  const memoryOf = (numSlots: number, numPostings: number): number => 128 * numSlots + 10 * numPostings + 200;
  for (let row = 0; row < numDeleted - 1; row++) index.delete(row);
  expect(index.memoryBytes).toBe(memoryOf(numTexts, numLeft));
  index.delete(numTexts - 1);
  expect(index.memoryBytes).toBe(memoryOf(numLeft - 1, numLeft - 1));
  expect([index.size, index.numTerms, index.numTextsWith('a')]).toEqual([numLeft - 1, numLeft - 1, numLeft - 1]);
});

test('texts with common terms only are passed over where another index has enough better ones', () => {
  const [rare, common] = [createLexicalIndex(), createLexicalIndex()];
  for (let row = 0; row < 3; row++) rare.set(row, 'the heron was');
  for (let row = 100; row < 300; row++) common.set(row, 'the owl was');
  const asked: number[] = [];
  const filter = { has: (row: number): boolean => asked.push(row) > 0 };
  const found = searchLexical(
    [
      { index: rare, filter: null },
      { index: common, filter },
    ],
    { text: 'the heron was' },
    3,
  );
  expect(found.map(({ row }) => row)).toEqual([0, 1, 2]);
  expect(asked).toEqual([]);
});

test('texts that match common words only come after those with rare ones', () => {
  const index = createLexicalIndex();
  for (let row = 1; row <= 100; row++) index.set(row, `the day of the ${row} was long`);
  index.set(101, 'the heron was here');
  const [first, second] = search(index, 'the heron');
  expect(first!.row).toBe(101);
  expect(second!.score).toBeLessThan(0.05);
});
