import { expect, test } from 'vitest';
import { settle } from '../../../test/support/manual-clock.ts';
import type { Model } from '../model.ts';
import { createLoadQueue } from './load-queue.ts';
import type { RoomPlan } from './model-room.ts';
import { createSlot, type ModelSlot } from './model-slot.ts';

function slotOf(id: string, numUsers = 1): ModelSlot {
  const load = (): Promise<Model> => Promise.reject(new Error());
  return Object.assign(createSlot({ id, aliases: [], created: 0, sizeBytes: 1, load }, false), { numUsers });
}

function setUp(plan: (slot: ModelSlot) => RoomPlan = () => 'ready') {
  const steps: string[] = [];
  const open: { resolve: () => void; reject: (error: Error) => void }[] = [];
  const step =
    (name: string) =>
    (slot: ModelSlot): Promise<void> => {
      steps.push(`${name} ${slot.entry.id}`);
      return new Promise((resolve, reject) => open.push({ resolve, reject }));
    };
  const queue = createLoadQueue({ planRoom: (slot) => plan(slot), begin: step('load'), unload: step('unload') });
  const ended: string[] = [];
  const load = (slot: ModelSlot): void =>
    void queue.load(slot).then(
      () => ended.push(slot.entry.id),
      (error: Error) => ended.push(`${slot.entry.id}: ${error.message}`),
    );
  const finish = async (error?: Error): Promise<void> => {
    const { resolve, reject } = open.shift()!;
    if (error === undefined) resolve();
    else reject(error);
    await settle();
  };
  return { queue, steps, ended, load, finish };
}

test('one model is loaded at a time, and a queue that was empty goes on', async () => {
  const { steps, ended, load, finish } = setUp();
  load(slotOf('a'));
  load(slotOf('b'));
  expect(steps).toEqual(['load a']);
  await finish();
  expect([steps, ended]).toEqual([['load a', 'load b'], ['a']]);
  await finish();
  load(slotOf('c'));
  await finish();
  expect([steps.at(-1), ended]).toEqual(['load c', ['a', 'b', 'c']]);
});

test('models with requests come first, then those that are kept in their order', async () => {
  const { queue, steps, ended, load, finish } = setUp();
  const [a, kept, left, used] = [slotOf('a'), slotOf('kept'), slotOf('left'), slotOf('used')];
  for (const slot of [a, kept, left, used]) load(slot);
  queue.keep(kept);
  queue.keep(slotOf('unknown'));
  kept.numUsers = 0;
  queue.leave(kept);
  queue.leave(left); // has requests
  left.numUsers = 0;
  queue.leave(left);
  queue.leave(used);
  queue.leave(slotOf('unknown', 0));
  await settle();
  expect(ended).toEqual(['left']);
  await finish();
  await finish();
  await finish();
  expect(steps).toEqual(['load a', 'load used', 'load kept']);
});

test('room is made first, and the plan is made anew after each step', async () => {
  let plan: RoomPlan = slotOf('victim', 0);
  const { queue, steps, ended, load, finish } = setUp(() => plan);
  load(slotOf('a'));
  plan = 'wait';
  await finish();
  expect(steps).toEqual(['unload victim']);
  queue.wake();
  await settle();
  expect(steps).toHaveLength(1);
  plan = 'ready';
  queue.wake();
  await settle();
  expect(steps).toEqual(['unload victim', 'load a']);
  await finish();
  expect(ended).toEqual(['a']);
});

test.each([
  ['whose engine was lost', (slot: ModelSlot) => (slot.model = {} as Model)],
  ['whose memory is being given back', (slot: ModelSlot) => (slot.unloading = Promise.resolve())],
])('a model %s is unloaded before it is loaded', async (_name, change) => {
  const { steps, load, finish } = setUp();
  const slot = slotOf('a');
  change(slot);
  load(slot);
  Object.assign(slot, { model: null, unloading: null });
  await finish();
  expect(steps).toEqual(['unload a', 'load a']);
});

test('a failed step fails its own model only, also one that has given up its place', async () => {
  const victim = slotOf('victim', 0);
  const { queue, steps, ended, load, finish } = setUp(({ entry }) => (entry.id === 'a' ? victim : 'ready'));
  const a = slotOf('a');
  load(a);
  load(slotOf('b'));
  a.numUsers = 0;
  queue.leave(a);
  await finish(new Error('stuck'));
  expect(steps).toEqual(['unload victim', 'load b']);
  await finish(new Error('no such file'));
  load(slotOf('c'));
  await finish();
  expect(ended).toEqual(['a', 'b: no such file', 'c']);
});

test('a model that waits for room is not loaded when its requests leave', async () => {
  const { queue, steps, ended, load } = setUp(({ entry }) => (entry.id === 'a' ? 'wait' : 'ready'));
  const a = slotOf('a');
  load(a);
  load(slotOf('b'));
  await settle();
  expect(steps).toEqual([]);
  a.numUsers = 0;
  queue.leave(a);
  await settle();
  expect([steps, ended]).toEqual([['load b'], ['a']]);
});
