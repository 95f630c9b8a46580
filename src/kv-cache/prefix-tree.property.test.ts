import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createFakeTree, pageIndexes } from './fake-pages.contract.ts';
import { valueByForks, valueByRecency } from './leaf-order.ts';
import { createPrefixList } from './prefix-list.contract.ts';
import type { KvPage, TreePlace } from './types.ts';

// Few tokens and small pages, so that sequences share, diverge inside pages and supersede each other often.
const namespace = fc.constantFrom('a', 'b');
const tokens = fc.oneof(
  fc.array(fc.nat({ max: 1 }), { maxLength: 9 }),
  fc.array(fc.nat({ max: 2 }), { maxLength: 4 }).map((end) => [0, 1, 0, 0, 1, 1, ...end]),
);
const retention = fc.constantFrom('ordinary' as const, 'session' as const);
const step = fc.oneof(
  { weight: 9, arbitrary: fc.record({ op: fc.constant('insert' as const), namespace, tokens, retention }) },
  // Which of the inserted pages the sequence keeps holding.
  { weight: 2, arbitrary: fc.record({ op: fc.constant('hold' as const), namespace, tokens, mask: fc.nat(31) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('letGo' as const), index: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('match' as const), namespace, tokens }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('touch' as const), namespace, tokens, length: fc.nat(13) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('evict' as const), retention, count: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('drop' as const), namespace }) },
);

const order = fc.constantFrom(valueByRecency, valueByForks);

/** All tokens up to a page, by following its predecessors. */
function sequenceOf(place: TreePlace): number[] {
  const before = place.parent();
  return [...(before === null ? [] : sequenceOf(before.place)), ...place.tokens];
}

test('[RT4][RT5][RT6][RT7][RT8][RT9][RT10] a tree behaves like a list of all pages', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      order,
      fc.array(step, { maxLength: 40 }),
      (pageTokens, value, steps) => {
        const { tree, pool } = createFakeTree(pageTokens, { value });
        const list = createPrefixList(pageTokens, value);
        const all: KvPage[] = [];
        const held: KvPage[] = [];
        for (const action of steps) {
          if (action.op === 'insert') {
            const pages = pool.create(Math.ceil(action.tokens.length / pageTokens));
            all.push(...pages);
            const { tokens: sequence } = action;
            const result = tree.insert(action.namespace, sequence, sequence.length, pages, action.retention);
            const twin = list.insert(action.namespace, sequence, pages, action.retention);
            expect(pageIndexes(result)).toEqual(pageIndexes(twin.result));
            for (const page of pages) pool.release(page);
          } else if (action.op === 'hold') {
            const { pages, partial } = tree.match(action.namespace, action.tokens);
            const found = partial === null ? pages : [...pages, partial.page];
            for (const page of found.filter((_, i) => (action.mask >> i) & 1)) {
              pool.retain(page);
              held.push(page);
            }
          } else if (action.op === 'letGo') {
            for (const page of held.splice(action.index, 1)) pool.release(page);
          } else if (action.op === 'match') {
            expect(tree.match(action.namespace, Int32Array.from(action.tokens))).toEqual(
              list.match(action.namespace, action.tokens),
            );
          } else if (action.op === 'touch') {
            const length = Math.min(action.length, action.tokens.length);
            tree.touch(action.namespace, action.tokens, length);
            list.touch(action.namespace, action.tokens, length);
          } else if (action.op === 'evict') {
            const expected = list.evictionOrder(action.retention).slice(0, action.count);
            let numLeft = action.count;
            const evicted: object[] = [];
            const numEvicted = tree.evict({
              retention: action.retention,
              isEnough: () => numLeft-- === 0,
              onEvict(page, place) {
                const { namespace: name, numUses } = place;
                expect(page.numRefs).toBe(1);
                evicted.push({ index: page.index, name, numUses, sequence: sequenceOf(place) });
              },
            });
            expect(evicted).toEqual(
              expected.map(({ page, namespace: name, numUses, sequence }) => ({
                index: page.index,
                name,
                numUses,
                sequence,
              })),
            );
            expect(numEvicted).toBe(expected.length);
            list.remove(expected.map(({ page }) => page));
          } else {
            tree.drop(action.namespace);
            list.remove(list.listed.filter((entry) => entry.namespace === action.namespace).map(({ page }) => page));
          }

          tree.checkIntegrity();
          expect(tree.numPages).toBe(list.listed.length);
          expect(tree.numIdlePages('ordinary')).toBe(list.evictionOrder('ordinary').length);
          expect(tree.numIdlePages()).toBe(list.evictionOrder('session').length);
          const owned = [...tree.owners()].flat();
          expect(new Set(owned)).toEqual(new Set(list.listed.map(({ page }) => page)));
          for (const page of all) {
            const count = [...owned, ...held].filter((other) => other === page).length;
            expect(page.numRefs, `references to page ${page.index}`).toBe(count);
          }
        }
        expect([...tree.idlePages()].map(({ page, place }) => [page.index, sequenceOf(place)])).toEqual(
          list
            .evictionOrder('session')
            .toReversed()
            .map(({ page, sequence }) => [page.index, sequence]),
        );
      },
    ),
    { numRuns: 400 },
  );
});
