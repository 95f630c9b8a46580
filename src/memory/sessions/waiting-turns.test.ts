import { expect, test } from 'vitest';
import type { ErasureSubject } from '../../core/erasure.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import { createSessionIndex } from './sessions.ts';
import { createWaitingTurns } from './waiting-turns.ts';

const fullDisk = (): never => {
  throw new RuvLLMError('disk_full', 'the disk is full', { isRetryable: true });
};

const requestOf = (text: string): string =>
  `0199a0b4-7c00-7000-8000-${Buffer.from(text).toString('hex').slice(0, 12).padStart(12, '0')}`;

const NONE: ReadonlySet<string> = new Set();
const subject = (given: Partial<ErasureSubject>): ErasureSubject => ({
  tenant: 'acme',
  userId: null,
  requestId: null,
  requestIds: NONE,
  sessionIds: NONE,
  quotingIds: NONE,
  ...given,
});

function setUp() {
  const services = createTestServices();
  const store = createTestStore(services);
  const sessions = createSessionIndex(store, services);
  const reports: string[] = [];
  let task: (() => void) | null = null;
  let numPlanned = 0;
  const turns = createWaitingTurns({
    sessions: () => sessions,
    newId: services.newId,
    schedule(next) {
      task = next;
      numPlanned++;
      return () => (task = null);
    },
    report: (message) => void reports.push(message),
  });
  const add = (text: string, session = 'chat', user: string | null = null) =>
    turns.add('acme', session, { query: text, answer: '…', requestId: requestOf(text) }, { userId: user });
  const stored = async (session = 'chat'): Promise<string[]> =>
    (await sessions.turns('acme', session)).map(({ query }) => query).toReversed();
  /** Runs the next try. */
  const retry = async (): Promise<void> => {
    const now = task!;
    task = null;
    now();
    for (let i = 0; i < 200; i++) await Promise.resolve();
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { store, turns, reports, add, stored, retry, isPlanned: () => task !== null, numPlanned: () => numPlanned };
}

test('[SI7] turns of a failing disk are stored in order when it works again', async () => {
  const { store, turns, reports, add, stored, retry, isPlanned } = setUp();
  await add('one');
  store.onCall = fullDisk;
  await add('two');
  await add('other', 'chat 2');
  expect(turns.problem()).toBe('2 session turns wait for the disk');
  await retry();
  expect(turns.problem()).toBe('2 session turns wait for the disk');
  store.onCall = () => {};
  // The disk works, but a turn before it is not stored yet.
  await add('three');
  expect(await stored()).toEqual(['one']);
  await retry();
  expect([await stored(), await stored('chat 2')]).toEqual([['one', 'two', 'three'], ['other']]);
  expect([turns.problem(), isPlanned(), reports.at(-1)]).toEqual([
    null,
    false,
    '3 session turns that waited for the disk are stored',
  ]);
});

test('[SI7] one try is planned for all waiting turns, and what waits is reported once', async () => {
  const { store, turns, reports, add, retry, isPlanned, numPlanned } = setUp();
  await turns.add('acme', 'chat', { query: 'q', answer: 'a' });
  expect([isPlanned(), reports]).toEqual([false, []]);
  store.onCall = fullDisk;
  await add('one');
  expect(reports).toHaveLength(1);
  await add('two');
  expect([numPlanned(), reports]).toEqual([1, ['session turns wait for the disk, which cannot be written']]);
  await retry();
  expect([numPlanned(), isPlanned()]).toEqual([2, true]);
});

test.each([
  ['a full disk', new RuvLLMError('disk_full', 'no', { isRetryable: true }), true],
  ['a failing disk', new RuvLLMError('io', 'no', { isRetryable: true }), true],
  ['a disk that will not work again', new RuvLLMError('io', 'no'), false],
  ['something else', new RuvLLMError('overloaded', 'no', { isRetryable: true }), false],
  ['an error that is not ours', Object.assign(new Error('no'), { code: 'io', isRetryable: true }), false],
])('[SI7] %s: whether the turn waits', async (_name, error, waits) => {
  const { store, turns, add } = setUp();
  store.onCall = () => {
    throw error;
  };
  if (waits) await add('one');
  else await expect(add('one')).rejects.toThrow('no');
  expect(turns.problem()).toBe(waits ? '1 session turns wait for the disk' : null);
});

test('[SI7] only turns of the same session of the same tenant wait behind one', async () => {
  const { store, turns, add, stored } = setUp();
  store.onCall = fullDisk;
  await add('one', 'chat');
  store.onCall = () => {};
  await add('two', 'chat 2');
  await turns.add('other', 'chat', { query: 'three', answer: '…' });
  expect([turns.problem(), await stored('chat 2')]).toEqual(['1 session turns wait for the disk', ['two']]);
  await add('four', 'chat');
  expect([turns.problem(), await stored('chat')]).toEqual(['2 session turns wait for the disk', []]);
});

test('[SI7] a turn that cannot be stored for another reason does not stop those behind it', async () => {
  const { store, turns, reports, add, stored, retry } = setUp();
  store.onCall = fullDisk;
  await add('one');
  await add('two', 'chat 2');
  let isFirst = true;
  store.onCall = (operation) => {
    if (operation !== 'put' || !isFirst) return;
    isFirst = false;
    throw new RuvLLMError('invalid_option', 'too long');
  };
  await retry();
  expect(reports).toContain('storing a session turn failed: too long');
  expect([await stored(), await stored('chat 2'), turns.problem()]).toEqual([[], ['two'], null]);
});

test('[SI7] a turn that is erased while it is stored is not taken for the next', async () => {
  const { store, turns, add, stored, retry } = setUp();
  store.onCall = fullDisk;
  await add('one', 'a', 'ada');
  await add('two', 'b', 'bob');
  let isErased = false;
  store.onCall = async () => {
    if (isErased) return;
    isErased = true;
    await turns.erasurePart.erase(subject({ userId: 'ada' }));
  };
  await retry();
  expect([await stored('b'), turns.problem()]).toEqual([['two'], null]);
});

test('[SI7] closing with nothing that waits reports nothing; a turn after it fails with the error of the disk', async () => {
  const { store, turns, reports, add, isPlanned } = setUp();
  await add('one');
  await turns.close();
  expect(reports).toEqual([]);
  store.onCall = fullDisk;
  await expect(add('two')).rejects.toThrow('the disk is full');
  expect([turns.problem(), isPlanned(), reports]).toEqual([null, false, []]);
});

test('[SI7] a turn that reached the disk although its write failed is not stored twice', async () => {
  const { store, add, stored, retry, reports } = setUp();
  await add('one');
  const { put } = store;
  store.put = async (records) => {
    await put.call(store, records);
    return fullDisk();
  };
  await add('two');
  store.put = put;
  await retry();
  expect(await stored()).toEqual(['one', 'two']);
  expect(reports.filter((text) => text.includes('failed'))).toEqual([]);
});

test('[SI7] other errors are thrown, closing tries once more, and losses are named', async () => {
  const { store, turns, reports, add, stored } = setUp();
  store.onCall = () => {
    throw new RuvLLMError('invalid_option', 'no');
  };
  await expect(add('one')).rejects.toThrow('no');
  store.onCall = fullDisk;
  await add('two');
  await turns.close();
  expect(reports.at(-1)).toBe('1 session turns are lost: the disk could not be written');
  store.onCall = () => {};
  await turns.close();
  expect(await stored()).toEqual(['two']);
});

test('[SI7] no more than 1000 turns wait, and the loss stays visible', async () => {
  const { store, turns, reports, add, retry, stored } = setUp();
  store.onCall = fullDisk;
  for (let i = 0; i < 1003; i++) {
    await add(`turn ${i}`, `chat ${i}`, i < 4 ? 'bob' : 'ada');
    if (i === 999) expect(turns.problem()).toBe('1000 session turns wait for the disk');
  }
  expect(turns.problem()).toBe(
    '1000 session turns wait for the disk; 3 session turns were lost while the disk could not be written',
  );
  expect(reports.filter((text) => text.startsWith('more than'))).toEqual([
    'more than 1000 session turns wait for the disk: the oldest are lost',
  ]);
  await turns.erasurePart.erase(subject({ userId: 'ada' }));
  store.onCall = () => {};
  await retry();
  expect(turns.problem()).toBe('3 session turns were lost while the disk could not be written');
  expect([await stored('chat 2'), await stored('chat 3')]).toEqual([[], ['turn 3']]);
});

test('[SI7] waiting turns are erased with their tenant, user or request', async () => {
  const { store, turns, add } = setUp();
  store.onCall = fullDisk;
  await add('one', 'a', 'ada');
  await add('two', 'b', 'bob');
  await add('three', 'c', 'bob');
  const { erasurePart } = turns;
  await erasurePart.erase(subject({ userId: 'ada' }));
  expect(await erasurePart.count(subject({ userId: 'ada' }))).toBe(0);
  await erasurePart.erase(subject({ requestId: requestOf('two'), requestIds: new Set([requestOf('two')]) }));
  expect(await erasurePart.count(subject({}))).toBe(1);
  await erasurePart.erase(subject({ tenant: 'other' }));
  expect(await erasurePart.count(subject({}))).toBe(1);
  await erasurePart.erase(subject({}));
  expect(await erasurePart.count(subject({}))).toBe(0);
});
