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
    return text.split(' ');
  });
  const average = texts.reduce((sum, { length }) => sum + length, 0) / texts.length;
  const isEven = { has: (row: number): boolean => row % 2 === 0 };
  for (let i = 0; i < 40; i++) {
    const words = Array.from({ length: 1 + (i % 12) }, () => `w${Math.floor(900 * random.next() ** 3)}`);
    const idfOf = (word: string): number => inverseFrequency(texts.length, texts.filter((list) => list.includes(word)).length); // prettier-ignore
    const idfs = new Map(words.map((word) => [word, idfOf(word)]));
    const most = [...idfs.values()].reduce((sum, idf) => sum + maxTermScore(idf), 0);
    for (const filter of [null, isEven]) {
      const scores = texts
        .flatMap((list, row) => {
          if (filter?.has(row) === false) return [];
          const frequencyOf = (word: string): number => list.filter((other) => other === word).length;
          return [[...idfs].reduce((sum, [word, idf]) => sum + termScore(idf, frequencyOf(word), list.length / average), 0)]; // prettier-ignore
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

test('texts that match common words only come after those with rare ones', () => {
  const index = createLexicalIndex();
  for (let row = 1; row <= 100; row++) index.set(row, `the day of the ${row} was long`);
  index.set(101, 'the heron was here');
  const [first, second] = search(index, 'the heron');
  expect(first!.row).toBe(101);
  expect(second!.score).toBeLessThan(0.05);
});
