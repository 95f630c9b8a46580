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

function setUp() {
  const services = createTestServices();
  const store = createTestStore(services);
  const sessions = createSessionIndex(store, services);
  const reports: string[] = [];
  let task: (() => void) | null = null;
  const turns = createWaitingTurns({
    sessions: () => sessions,
    newId: services.newId,
    schedule(next) {
      task = next;
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
  return { store, turns, reports, add, stored, retry, isPlanned: () => task !== null };
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
  const { store, turns, add, retry, stored } = setUp();
  store.onCall = fullDisk;
  for (let i = 0; i < 1001; i++) await add(`turn ${i}`, `chat ${i}`);
  expect(turns.problem()).toBe(
    '1000 session turns wait for the disk; 1 session turns were lost while the disk could not be written',
  );
  store.onCall = () => {};
  await retry();
  await expect.poll(() => turns.problem()).toBe('1 session turns were lost while the disk could not be written');
  expect([await stored('chat 0'), await stored('chat 1000')]).toEqual([[], ['turn 1000']]);
});

test('[SI7] waiting turns are erased with their tenant, user or request', async () => {
  const { store, turns, add } = setUp();
  store.onCall = fullDisk;
  await add('one', 'a', 'ada');
  await add('two', 'b', 'bob');
  await add('three', 'c', 'bob');
  const none: ReadonlySet<string> = new Set();
  const subject = (given: Partial<ErasureSubject>): ErasureSubject => ({
    tenant: 'acme',
    userId: null,
    requestId: null,
    requestIds: none,
    sessionIds: none,
    quotingIds: none,
    ...given,
  });
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
