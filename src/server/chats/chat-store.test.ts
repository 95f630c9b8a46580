import { expect, test } from 'vitest';
import { createStoredRecords } from '../../memory/stored/stored-records.ts';
import { createTestServices, createTestStore } from '../../memory/test-store.contract.ts';
import { createChatStore, MAX_CHAT_CHARS, MAX_SEARCH_CHARS } from './chat-store.ts';

function setUp() {
  const services = createTestServices();
  const store = createTestStore(services);
  const records = createStoredRecords({ store, services, tenants: { all: () => [], add: async () => {} } });
  const erasing = new Set<string>();
  const open = () => createChatStore({ records, now: services.now, isErasing: ({ requestId }) => erasing.has(requestId) }); // prettier-ignore
  return { chats: open(), open, erasing, services };
}
const ana = { tenant: 'local', keyId: 'ana' };
const ben = { tenant: 'local', keyId: 'ben' };
const anyone = { tenant: 'local', keyId: null };
const chat = { title: 'Hi', isPinned: false, version: 0, requestIds: [], content: { messages: ['a'] } };

test('[CH1] keeps a conversation over a restart, with its versions', async () => {
  const { chats, open } = setUp();
  expect(await chats.put(ana, 'one', chat)).toMatchObject({ id: 'one', version: 1 });
  await chats.put(ana, 'one', { ...chat, version: 1, title: 'Ho', isPinned: true, content: { messages: ['a', 'b'] } });
  const later = open();
  expect(await later.list(ana)).toMatchObject([{ id: 'one', title: 'Ho', isPinned: true, version: 2 }]);
  expect(await later.find(ana, 'one')).toMatchObject({ content: { messages: ['a', 'b'] } });
  // Another page has written it since.
  await expect(later.put(ana, 'one', { ...chat, version: 1 })).rejects.toMatchObject({ code: 'conflict' });
  await expect(later.put(ana, 'two', { ...chat, version: 5 })).rejects.toMatchObject({ code: 'conflict' });
  expect([await later.delete(ana, 'one'), await later.delete(ana, 'one')]).toEqual([true, false]);
  expect(await later.list(ana)).toEqual([]);
});

test('[CH2] keys see their own conversations and those of the open server before them', async () => {
  const { chats } = setUp();
  await chats.put(anyone, 'open', chat);
  await chats.put(ana, 'same', { ...chat, title: 'of Ana' });
  await chats.put(ben, 'same', { ...chat, title: 'of Ben' });
  const titles = async (owner: typeof ana | typeof anyone) =>
    (await chats.list(owner)).map(({ title }) => title).sort();
  expect([await titles(ana), await titles(ben), await titles(anyone)]).toEqual([['Hi', 'of Ana'], ['Hi', 'of Ben'], ['Hi']]); // prettier-ignore
  expect(await chats.find({ ...ana, tenant: 'other' }, 'open')).toBeNull();
  expect(await chats.find({ tenant: 'local', keyId: 'eve' }, 'same')).toBeNull();
  await chats.put(ana, 'open', { ...chat, version: 1, title: 'changed' });
  expect(await titles(ben)).toEqual(['changed', 'of Ben']);
  expect(await chats.delete(ben, 'open')).toBe(true);
  expect(await titles(ana)).toEqual(['of Ana']);
});

test('[CH3] refuses conversations that are too large or contain a request being erased', async () => {
  const { chats, erasing } = setUp();
  const large = { ...chat, content: 'x'.repeat(MAX_CHAT_CHARS) };
  await expect(chats.put(ana, 'one', large)).rejects.toMatchObject({ code: 'limit_exceeded' });
  erasing.add('r1');
  await expect(chats.put(ana, 'one', { ...chat, requestIds: ['r1'] })).rejects.toMatchObject({ code: 'conflict' });
  expect(await chats.list(ana)).toEqual([]);
});

test('[CH4] finds words in titles and messages, also of other versions, but not in the rest of a conversation', async () => {
  const { chats } = setUp();
  const put = (id: string, title: string, content: object) => chats.put(ana, id, { ...chat, title, content });
  await put('title', 'The Zebra', { messages: [] });
  await put('message', 'a', { messages: [{ text: 'Hi' }, { text: 'A "zebra"\nruns' }] });
  await put('version', 'b', { messages: [], versions: { x: { tails: [[], [{ text: 'old zebra' }]] } } });
  await put('elsewhere', 'c', { messages: [{ text: 'Hi', details: { model: 'zebra' } }] });
  await chats.put(ben, 'of-ben', { ...chat, title: 'zebra', content: { messages: [{ text: 'zebra' }] } });
  const idsOf = async (words: string) => (await chats.search(ana, words)).map(({ id }) => id).sort();
  expect(await idsOf('ZEBRA')).toEqual(['message', 'title', 'version']);
  expect(await idsOf('"zebra"\nRuns')).toEqual(['message']);
  expect(await idsOf('text')).toEqual([]);
});

test('[CH5] searches the messages of the conversations changed last, up to a limit, and all titles', async () => {
  const { chats, services } = setUp();
  await chats.put(ana, 'oldest', { ...chat, content: { messages: [{ text: 'zebra' }] } });
  await chats.put(ana, 'titled', { ...chat, title: 'zebra' });
  const large = { messages: [{ text: 'x'.repeat(MAX_CHAT_CHARS - 100) }] };
  for (let index = 0; index < MAX_SEARCH_CHARS / MAX_CHAT_CHARS + 1; index++) {
    services.timeMs++;
    await chats.put(ana, `large-${index}`, { ...chat, content: large });
  }
  expect((await chats.search(ana, 'zebra')).map(({ id }) => id)).toEqual(['titled']);
});
