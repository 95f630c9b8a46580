import { expect, test } from 'vitest';
import { createNode, isBehind, lacksModel, noteLackedModel, reportsModel, setHealth } from './node-table.ts';

test('a node that goes down ends what it was doing; other changes of its health do not', () => {
  const node = createNode('1', 'http://a', -0.5);
  expect(node).toMatchObject({ health: 'unknown', numRequests: 0, lastTurn: -0.5, fleet: null });
  const { signal } = node.lost;
  for (const health of ['up', 'loading', 'draining', 'refused'] as const) setHealth(node, health, health);
  expect([signal.aborted, node.reason]).toEqual([false, 'refused']);
  setHealth(node, 'down', 'gone');
  expect([signal.aborted, node.lost.signal.aborted]).toEqual([true, false]);
});

test('a model is reported by its id or an alias, with an adapter behind a colon', () => {
  const node = createNode('1', 'http://a');
  expect(reportsModel(node, 'm')).toBe(false);
  const models = [{ id: 'm', aliases: ['mm'], modelHash: '', adapters: ['style', 'b'] }];
  node.fleet = { version: '1', models, release: 3, numRequests: 0 };
  const reported = ['m', 'mm', 'm:style', 'mm:style', 'm:b', 'mm:b'];
  expect(reported.filter((name) => !reportsModel(node, name))).toEqual([]);
  const others = ['', 'n', 'm:', 'm:other', 'n:style', 'mxstyle', ':style', 'style', 'm:style:b'];
  expect(others.filter((name) => reportsModel(node, name))).toEqual([]);
});

test('a node is behind a later release than its own, and behind each without one', () => {
  const node = createNode('1', 'http://a');
  expect([isBehind(node, 0), isBehind(node, 1)]).toEqual([false, true]);
  node.fleet = { version: '1', models: [], release: 3, numRequests: 0 };
  expect([2, 3, 4].map((release) => isBehind(node, release))).toEqual([false, false, true]);
});

test('a model is lacked for 30 s, and at most 1000 models are', () => {
  const node = createNode('1', 'http://a');
  noteLackedModel(node, 'm', 1000);
  expect([lacksModel(node, 'm', 30_999), lacksModel(node, 'n', 1000)]).toEqual([true, false]);
  expect([lacksModel(node, 'm', 31_000), node.lackedModels.size]).toEqual([false, 0]);
  for (let i = 0; i < 1000; i++) noteLackedModel(node, `m${i}`, 0);
  expect([node.lackedModels.size, lacksModel(node, 'm0', 0)]).toEqual([1000, true]);
  noteLackedModel(node, 'more', 0);
  expect([...node.lackedModels.keys()]).toEqual(['more']);
});
