import { expect, test } from 'vitest';
import { createEvictionOrder, type EvictionOrder } from './eviction-order.ts';

const PAGE_TOKENS = 2;
const ROOM = 20;
let nextToken = 1000;
const fresh = (numPages: number): number[] => Array.from({ length: numPages * PAGE_TOKENS }, () => nextToken++);
const system = (i: number): number[] => Array.from({ length: 4 * PAGE_TOKENS }, (_, at) => 10 * i + at);

/** By recency, the single prompts displace the shared start. */
function shareOneStart(order: EvictionOrder, maxPages: number, namespace: (i: number) => string = () => 'a'): void {
  for (let i = 0; i < 5; i++) order.observe(namespace(i), [...system(1), ...fresh(1)], maxPages);
  for (let i = 0; i < 200; i++) {
    order.observe(namespace(i), [...system(1), ...fresh(1)], maxPages);
    for (let j = 0; j < 3; j++) order.observe(namespace(i), fresh(6), maxPages);
  }
}

test('[RT18] a shared start among single prompts makes forks decide; starts that are soon forgotten make recency decide', () => {
  const order = createEvictionOrder(PAGE_TOKENS);
  expect(order.name).toBe('recency');
  shareOneStart(order, ROOM);
  expect(order.name).toBe('forks');
  const text = fresh(10);
  for (let i = 0; i < 300; i++) {
    for (let j = 0; j < 6; j++) order.observe('a', [...system(100 + i), ...fresh(1)], ROOM);
    order.observe('a', text, ROOM);
  }
  expect(order.name).toBe('recency');
});

test('[RT18] with room for everything nothing is decided, and a cleared order has forgotten the prompts', () => {
  const order = createEvictionOrder(PAGE_TOKENS);
  shareOneStart(order, Infinity);
  expect(order.name).toBe('recency');
  order.clear();
  for (let i = 0; i < 3; i++) order.observe('a', fresh(ROOM), ROOM);
  expect(order.name).toBe('recency');
});

test('[RT18] the same tokens of another namespace are other pages', () => {
  const order = createEvictionOrder(PAGE_TOKENS);
  shareOneStart(order, ROOM, (i) => `tenant ${i}`);
  expect(order.name).toBe('recency');
});
