import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { changeDatabase, newFolder, openAt } from '../../platform/node/memory/memory-setup.contract.ts';
import { resolveServerLimits } from '../limits.ts';
import { createObjectStore } from './object-store.ts';
import type { StoredObject } from './types.ts';

const conversationOf = (id: string): StoredObject<'conversation'> => ({
  id,
  type: 'conversation',
  createdMs: 1,
  model: null,
  metadata: {},
  owners: [{ requestId: id }],
  content: { items: [{ id: 'item', type: 'message' }] },
});

/** Opens the records of a folder as a server does. */
async function open(folder: string) {
  const clock = createManualClock();
  const { store: files } = openAt(folder, { now: clock.wallClock });
  const memory = await openTestMemory({ store: files, now: clock.wallClock });
  const reports: string[] = [];
  const limits = resolveServerLimits();
  const report = (message: string): void => void reports.push(message);
  const store = createObjectStore({ limits, clock, records: memory.stored, report });
  const close = async (): Promise<void> => {
    await store.close();
    await memory.close();
  };
  return { store, reports, close };
}

test('[R6] a damaged row costs its own object or the list, and nothing else', async () => {
  const folder = newFolder();
  const first = await open(folder);
  for (const id of ['a', 'b']) await first.store.put('t', conversationOf(id));
  await first.close();
  const copy = join(folder, 'copy');
  copyFileSync(join(folder, 'memory.db'), copy);
  const outcomes: string[] = [];
  for (const index of [0, 1, 2, 3]) {
    // The tenant of the memory itself is the first one.
    const row = `SELECT row FROM record WHERE tenant = (SELECT max(tenant) FROM record) LIMIT 1 OFFSET ${index}`;
    changeDatabase(folder, `UPDATE record SET sealed = substr(sealed, 1, 20) WHERE row = (${row})`);
    const { store, reports, close } = await open(folder);
    const read = async (id: string): Promise<string> => {
      const object = await store.find('t', 'conversation', id).catch((error: { code: string }) => error.code);
      return typeof object === 'string' ? object : (object?.id ?? 'none');
    };
    await store.put('t', conversationOf('c'));
    await store.put('t', conversationOf('d'));
    const list = await store.list('t', 'conversation').then(
      (entries) => entries.length,
      (error: { code: string }) => error.code,
    );
    outcomes.push([await read('a'), await read('b'), await read('c'), list, reports.length].join(' '));
    await close();
    copyFileSync(copy, join(folder, 'memory.db'));
  }
  expect(outcomes.sort()).toEqual(['a io c 4 0', 'a none c 3 0', 'io b c 4 0', 'none b c 3 0']);
});
