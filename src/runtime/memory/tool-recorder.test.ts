import { expect, test } from 'vitest';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import type { FinishedToolCall } from '../tools/tool-loop.ts';
import { createRequestMemory } from './request-memory.ts';

const finished: FinishedToolCall = {
  call: { id: 'c', name: 'read', arguments: '{"path":"secret"}' },
  origin: { server: 'files', tool: 'read' },
  arguments: { path: 'secret' },
  output: { text: 'x'.repeat(300_000), outcome: 'cut', numBytes: 900_000 },
  durationMs: 5,
};

test('erasing a request erases its tool calls', async () => {
  const memory = await openTestMemory();
  const requests = createRequestMemory(memory, { now: () => 0, wallClock: Date.now, report() {} });
  const requestId = crypto.randomUUID();
  const recorder = requests.openTools({ tenant: 'acme', requestId, user: null, session: null });
  recorder.record(finished);
  recorder.close();
  await memory.audit.flush();
  expect(JSON.stringify((await memory.audit.search('acme', {})).entries)).toContain('secret');
  await memory.erase({ tenant: 'acme', requestId });
  expect(JSON.stringify((await memory.audit.search('acme', {})).entries)).not.toContain('secret');
  expect((await memory.audit.verify('acme')).brokenAt).toBeNull();
  await requests.close();
  await memory.close();
});

test('a user who is erased during a tool call leaves nothing of it, and the loop ends', async () => {
  const memory = await openTestMemory();
  const requests = createRequestMemory(memory, { now: () => 0, wallClock: Date.now, report() {} });
  const requestId = crypto.randomUUID();
  const ann = requests.openTools({ tenant: 'acme', requestId, user: 'ann', session: null });
  const bob = requests.openTools({ tenant: 'acme', requestId: crypto.randomUUID(), user: 'bob', session: null });
  ann.record(finished);
  await memory.erase({ tenant: 'acme', userId: 'ann' });
  expect(() => ann.record(finished)).toThrow('the data of this request was erased');
  bob.record(finished);
  await memory.audit.flush();
  const { entries } = await memory.audit.search('acme', {});
  const kept = entries.filter(({ entry }) => entry.tool !== undefined);
  expect(kept).toMatchObject([{ entry: { userId: 'bob', tool: { numBytes: 900_000, outcome: 'cut' } } }]);
  ann.close();
  bob.close();
  await requests.close();
  await memory.close();
});
