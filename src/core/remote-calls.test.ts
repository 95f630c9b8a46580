import { expect, test } from 'vitest';
import { RuvLLMError } from './errors.ts';
import { type CallTransport, createRemote, type MethodList, type RemoteReply, serveCalls } from './remote-calls.ts';

interface Adder {
  add(a: number, b: number): Promise<number>;
  fail(): Promise<never>;
  wait(): Promise<void>;
}
const METHODS: MethodList<Adder> = { add: true, fail: true, wait: true };

function connect(maxPending?: number) {
  const busy: boolean[] = [];
  let onReply = (_reply: RemoteReply): void => {};
  let onEnd = (_reason: string): void => {};
  const object = {
    add: async (a: number, b: number) => a + b,
    fail: () => Promise.reject(new RuvLLMError('disk_full', 'no room', { data: { freeBytes: 3 } })),
    wait: () => new Promise<void>(() => {}),
    secret: () => 1,
  };
  const serve = serveCalls<Adder>(object, METHODS, (reply) => queueMicrotask(() => onReply(structuredClone(reply))));
  const transport: CallTransport = {
    post: (call) => serve(structuredClone(call)),
    listen: (reply, end) => ([onReply, onEnd] = [reply, end]),
    setBusy: (isBusy) => void busy.push(isBusy),
    end: async () => {},
  };
  const remote = createRemote<Adder>(transport, METHODS, {
    name: 'the adder',
    ...(maxPending === undefined ? {} : { maxPending }),
  });
  return { remote, busy, die: (reason: string) => onEnd(reason), serve, replies: () => onReply };
}

test('a call returns its value or its error', async () => {
  const { remote, busy } = connect();
  expect(await Promise.all([remote.object.add(1, 2), remote.object.add(3, 4)])).toEqual([3, 7]);
  await expect(remote.object.fail()).rejects.toMatchObject({ code: 'disk_full', data: { freeBytes: 3 } });
  expect(busy).toEqual([true, false, true, false]);
});

test('rejects methods that are not listed', async () => {
  const replies: RemoteReply[] = [];
  const serve = serveCalls<Adder>({ secret: () => 1 } as never, METHODS, (reply) => void replies.push(reply));
  serve({ callId: 1, method: 'secret', args: [] });
  serve({ callId: 2, method: 'toString', args: [] });
  await Promise.resolve();
  expect(replies).toMatchObject([{ error: { code: 'internal' } }, { error: { code: 'internal' } }]);
});

test('arguments that cannot be cloned fail without blocking later calls', async () => {
  const { remote, busy } = connect();
  await expect(remote.object.add((() => 1) as never, 2)).rejects.toMatchObject({ code: 'invalid_option' });
  expect(busy).toEqual([true, false]);
  expect(await remote.object.add(1, 1)).toBe(2);
});

test('waiting and later calls fail once the thread has ended', async () => {
  const { remote, die } = connect();
  const waiting = remote.object.wait();
  die('exit code 1');
  await expect(waiting).rejects.toMatchObject({ code: 'io', message: 'the thread for the adder ended: exit code 1' });
  await expect(remote.object.add(1, 2)).rejects.toMatchObject({ code: 'io' });
});

test('rejects more pending calls than the limit', async () => {
  const { remote } = connect(2);
  void remote.object.wait().catch(() => {});
  void remote.object.wait().catch(() => {});
  await expect(remote.object.wait()).rejects.toMatchObject({ code: 'overloaded' });
  await remote.end();
});
