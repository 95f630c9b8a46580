import { expect, test } from 'vitest';
import { RuvLLMError } from '../core/errors.ts';
import { createMcpServer, type ServedTool } from './server.ts';

const never = new AbortController().signal;

function setUp(call: ServedTool['call']) {
  const reported: unknown[] = [];
  const tool: ServedTool = { name: 'x', description: 'X.', inputSchema: { type: 'object' }, isReadOnly: true, call };
  const info = { version: '0', instructions: '', report: (error: unknown) => void reported.push(error) };
  const server = createMcpServer([tool], info);
  const send = (message: object, signal = never): Promise<any> => server.handle({ jsonrpc: '2.0', ...message }, signal);
  const start = (signal?: AbortSignal): Promise<any> => send({ id: 1, method: 'tools/call', params: { name: 'x' } }, signal); // prettier-ignore
  return { send, start, reported };
}

test('shows typed errors, and reports bugs without showing them', async () => {
  const typed = setUp(() => Promise.reject(new RuvLLMError('not_found', 'there is no record 7')));
  expect((await typed.start()).result).toMatchObject({ isError: true, content: [{ text: 'not_found: there is no record 7' }] }); // prettier-ignore
  expect(typed.reported).toEqual([]);
  const bug = new TypeError('/home/secret/file.ts is undefined');
  const broken = setUp(() => Promise.reject(bug));
  const { result } = await broken.start();
  expect(result.isError).toBe(true);
  expect(JSON.stringify(result)).not.toContain('secret');
  expect(broken.reported).toEqual([bug]);
});

test.each(['a notification', 'the connection'])('%s cancels a call', async (how) => {
  const connection = new AbortController();
  const { send, start } = setUp(
    (_args, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new RuvLLMError('aborted', 'cancelled')));
      }),
  );
  const reply = start(connection.signal);
  if (how === 'the connection') connection.abort();
  else expect(await send({ method: 'notifications/cancelled', params: { requestId: 1 } })).toBeNull();
  expect((await reply).result).toMatchObject({ isError: true, content: [{ text: 'aborted: cancelled' }] });
});
