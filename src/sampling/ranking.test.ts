import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { topOfRow } from '../../test/support/top-logits.ts';
import { TOP_SUM_TOLERANCE } from '../core/top-logits.ts';
import { rank } from './ranking.ts';

const value = fc.constantFrom(-Infinity, -2, -1, -0.5, 0, 0.5, 1, 3, 30);

test('the ranking is the longest certain prefix of all changed tokens, sorted', () => {
  const property = fc.property(
    fc.array(value, { minLength: 2, maxLength: 30 }),
    fc.integer({ min: 1, max: 30 }),
    fc.array(fc.tuple(fc.nat(29), value), { maxLength: 12 }),
    (logits, k, changes) => {
      const row = Float32Array.from(logits);
      const top = topOfRow(row, Math.min(k, row.length));
      fc.pre(top.max > -Infinity);
      const shaped = row.slice();
      for (const [id, after] of changes) if (id < row.length) shaped[id] = after;
      const ids = new Set(changes.map(([id]) => id).filter((id) => id < row.length));
      const changed = new Map(Array.from(ids, (id) => [id, { before: row[id]!, after: shaped[id]! }]));
      const ranking = rank(top, row.length, changed);

      const sorted = Array.from(shaped, (_, id) => id)
        .filter((id) => shaped[id]! > -Infinity)
        .sort((a, b) => shaped[b]! - shaped[a]! || a - b);
      // Unchanged tokens outside the top rank below the last of the top.
      const isKnown = (id: number): boolean => ids.has(id) || top.ids.includes(id);
      const last = top.ids.at(-1)!;
      const isBehind = (id: number): boolean => shaped[id]! < row[last]! || (shaped[id] === row[last] && id > last);
      const isWhole = top.ids.length === row.length || row[last] === -Infinity;
      const known = isWhole ? sorted : sorted.filter((id) => isKnown(id) && !isBehind(id));
      expect(ranking === null).toBe(known.length === 0);
      if (known.length === 0) return;
      const { count, ids: ranked, values, sumExp, error } = ranking!;
      expect(Array.from(ranked.subarray(0, count))).toEqual(known);
      expect(known).toEqual(sorted.slice(0, count));
      expect(Array.from(values.subarray(0, count))).toEqual(known.map((id) => shaped[id]));
      expect(ranking!.isWhole).toBe(isWhole);
      const best = shaped[known[0]!]!;
      const exact = shaped.reduce((sum, x) => sum + Math.exp(x - best), 0);
      expect(Math.abs(sumExp - exact)).toBeLessThan(error);
      expect(error).toBeGreaterThanOrEqual(exact * TOP_SUM_TOLERANCE * (1 - 1e-9));
    },
  );
  fc.assert(property, { numRuns: 3000 });
});

test('leaves a change to a non-finite logit to the whole row', () => {
  const row = Float32Array.of(1, 2, 3);
  for (const after of [NaN, Infinity]) {
    expect(rank(topOfRow(row, 2), 3, new Map([[0, { before: 1, after }]]))).toBe(null);
  }
});
