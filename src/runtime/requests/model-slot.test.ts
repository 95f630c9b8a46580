import { expect, test } from 'vitest';
import type { Model } from '../model.ts';
import { createSlot, defaultIdleMs, isAlive, type ModelEntry, type ModelSlot, statusOf } from './model-slot.ts';

const ENTRY: ModelEntry = {
  id: 'a',
  aliases: ['b'],
  created: 5,
  sizeBytes: 40,
  load: () => Promise.reject(new Error()),
};
const ALIVE = { isLoaded: () => true } as Model;
const LOST = { isLoaded: () => false } as Model;
const done = Promise.resolve();

test('a new model is unloaded, without anything it was not given', () => {
  expect(statusOf(createSlot(ENTRY, true))).toEqual({
    id: 'a',
    aliases: ['b'],
    created: 5,
    sizeBytes: 40,
    state: 'unloaded',
    numUsers: 0,
    isAdded: true,
    maxContext: null,
    sampling: {},
    isPinned: false,
    group: null,
    expiresMs: null,
    loss: null,
    numLosses: 0,
    heldBytes: 0,
    model: null,
    error: null,
  });
  const more = { fileBytes: 0, path: '/a', maxContext: 8, sampling: { topK: 1 }, isPinned: true, group: 'g' };
  expect(statusOf(createSlot({ ...ENTRY, ...more }, false))).toMatchObject({ ...more, isAdded: false });
});

test.each<[string, Partial<ModelSlot>, object]>([
  ['loaded', { model: ALIVE }, { state: 'loaded', model: ALIVE }],
  ['drained', { model: ALIVE, isDraining: true }, { state: 'unloading', model: ALIVE }],
  ['given back', { model: ALIVE, unloading: done }, { state: 'unloading', model: ALIVE }],
  ['lost', { model: LOST }, { state: 'unloaded', model: null }],
  ['lost and loaded again', { model: LOST, loading: done, unloading: done }, { state: 'loading', model: null }],
  ['loaded after a failure', { loading: done, error: new Error('x') }, { state: 'loading', error: 'x' }],
  ['one whose load failed', { error: new Error('x') }, { state: 'failed', error: 'x' }],
  ['one whose load failed without an error', { error: 'words' }, { state: 'failed', error: 'words' }],
  ['idle', { idleTimer: { cancel() {}, expiresMs: 7 } }, { expiresMs: 7 }],
])('the state of a model that is %s', (_name, given, expected) => {
  const slot = Object.assign(createSlot(ENTRY, false), given);
  expect(statusOf(slot)).toMatchObject(expected);
  expect(isAlive(slot)).toBe(given.model === ALIVE);
});

test.each([
  [{}, null],
  [{ idleUnloadMs: 10 }, 10],
  [{ idleUnloadMs: 10, isPinned: false }, 10],
  [{ idleUnloadMs: 10, isPinned: true }, null],
])('with %j an idle model is unloaded after %s ms', (more, idleMs) => {
  expect(defaultIdleMs({ ...ENTRY, ...more })).toBe(idleMs);
});
