import { expect, test } from 'vitest';
import { chooseNode, costOf, enterNode, type NodeLoad, scaleFor } from './choose-node.ts';

const load = (more: Partial<NodeLoad> = {}): NodeLoad => ({ numRequests: 0, pendingTokens: 0, numOtherRequests: 0, lastTurn: 0, ...more }); // prettier-ignore
const cold = (numTokens: number) => ({ numTokens, warmTokens: () => 0 });

test('one gateway compares loads exactly, several in steps of 128 tokens each, at most 1024', () => {
  expect([1, 2, 3, 8, 9, 32].map((count) => scaleFor(count).stepTokens)).toEqual([1, 256, 384, 1024, 1024, 1024]);
});

test('the cost is the cold part of the prompt and the load, rounded down to its step', () => {
  const node = load({ numRequests: 1, numOtherRequests: 2, pendingTokens: 10 });
  expect(costOf(node, cold(100), scaleFor(1))).toBe(100 + 10 + 3 * 128);
  expect(costOf(node, cold(100), scaleFor(2))).toBe(100 + 256);
  expect(costOf(node, { numTokens: 100, warmTokens: () => 64 }, scaleFor(1))).toBe(36 + 394);
  expect(costOf(node, { numTokens: 100, warmTokens: () => 160 }, scaleFor(1))).toBe(394);
});

test('of equal nodes the one that was not chosen for longest is taken, of those the first', () => {
  const choose = (...nodes: NodeLoad[]): number => nodes.indexOf(chooseNode(nodes, cold(1), scaleFor(1))!);
  expect(choose(load({ lastTurn: 3 }), load({ lastTurn: 1 }), load({ lastTurn: 2 }))).toBe(1);
  expect(choose(load({ lastTurn: 1 }), load({ lastTurn: 1 }))).toBe(0);
  expect(choose(load({ lastTurn: 1, pendingTokens: 1 }), load({ lastTurn: 9 }))).toBe(1);
  expect(choose(load({ lastTurn: 9 }), load({ lastTurn: 1, pendingTokens: 1 }))).toBe(0);
  expect(chooseNode([], cold(1), scaleFor(1))).toBeNull();
});

test('a request counts until it leaves, and once', () => {
  const node = load();
  const leave = enterNode(node, { numTokens: 100, warmTokens: () => 30 }, 7);
  const other = enterNode(node, { numTokens: 10, warmTokens: () => 30 }, 8);
  expect(node).toEqual(load({ numRequests: 2, pendingTokens: 70, lastTurn: 8 }));
  leave.tokens();
  leave.tokens();
  expect(node).toMatchObject({ numRequests: 2, pendingTokens: 0 });
  leave.all();
  leave.all();
  expect(node).toMatchObject({ numRequests: 1, pendingTokens: 0 });
  other.all();
  expect(node).toMatchObject({ numRequests: 0, pendingTokens: 0 });
});
