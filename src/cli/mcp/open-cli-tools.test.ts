import { expect, test, vi } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { createSpokenModel } from '../../../test/support/spoken-model.ts';
import { toRunnables } from '../../runtime/tools/runnable-tool.ts';
import { createChatHost } from '../chat/chat-host.ts';
import { runPiped } from '../chat/piped.ts';
import { runRepl } from '../chat/repl.ts';
import { createChatSession } from '../chat/session.ts';
import { createOutput } from '../output.ts';
import { type CliTools, createConsent } from './open-cli-tools.ts';

const CALL = '<tool_call>\n{"name": "remove", "arguments": {"path": "a\\u001b[31m"}}\n</tool_call>';

function start({ isTerminal = true, answers = [CALL, 'Done.', CALL, 'Done again.'] } = {}) {
  const io = createFakeIo({ isTerminal, environment: { NO_COLOR: '1' } });
  const output = createOutput(io, false);
  const { model, requests } = createSpokenModel(answers);
  const calls: object[] = [];
  const offered = {
    server: 'files',
    name: 'remove',
    description: '',
    inputSchema: { type: 'object' },
    isReadOnly: false,
    consent: 'ask' as const,
    maxAgeMs: 0,
    async call(args: object) {
      calls.push(args);
      return { text: 'removed', isError: false, numBytes: 7, isCut: false };
    },
  };
  const tools: CliTools = { tools: toRunnables([offered], new Set()), ...createConsent(output), close: async () => {} };
  const session = createChatSession(model, {}, null, null, tools);
  const host = createChatHost({ io, output }, model, session);
  const done = isTerminal ? runRepl({ io, output }, host, null, tools) : runPiped(io, host);
  const waitForOutput = (text: string) =>
    vi.waitFor(() => expect(io.written.stdout + io.written.stderr).toContain(text), { timeout: 300_000 });
  return { io, session, done, waitForOutput, calls, requests };
}
const QUESTION = 'Allow files/remove';

test('asks in the terminal before a call, and keeps the turns', async () => {
  const { io, session, done, waitForOutput, calls } = start();
  io.stdin.write('go\r');
  await waitForOutput(QUESTION);
  expect(io.written.stderr).not.toContain('\u001b[31m'); // arguments come from a model
  io.stdin.write('y\r');
  await waitForOutput('Done.');
  expect(calls).toHaveLength(1);
  expect(session.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  expect(io.written.stderr).toContain('files/remove: done, 7 bytes');
  io.stdin.write('\x04');
  await done;
});

test('no means no, always means no more questions', async () => {
  const refused = start();
  refused.io.stdin.write('go\r');
  await refused.waitForOutput(QUESTION);
  refused.io.stdin.write('\r');
  await refused.waitForOutput('Done.');
  expect(refused.calls).toEqual([]);
  expect(refused.requests[1]!.prompt).toContain('was not allowed');
  refused.io.stdin.write('\x04');
  await refused.done;
  const always = start();
  always.io.stdin.write('go\r');
  await always.waitForOutput(QUESTION);
  always.io.stdin.write('a\r');
  await always.waitForOutput('Done.');
  always.io.stdin.write('again\r');
  await always.waitForOutput('Done again.');
  expect(always.calls).toHaveLength(2);
  expect(always.io.written.stderr.split(QUESTION)).toHaveLength(2);
  always.io.stdin.write('\x04');
  await always.done;
});

test('Ctrl-C at the question refuses the call and stops the answer', async () => {
  const { io, done, waitForOutput, calls } = start();
  io.stdin.write('go\r');
  await waitForOutput(QUESTION);
  io.stdin.write('\x03');
  await waitForOutput('stopped');
  expect(calls).toEqual([]);
  io.stdin.write('\x04');
  await done;
});

test('without a terminal a call that must be asked for is refused with a remark', async () => {
  const { io, done, calls } = start({ isTerminal: false });
  io.stdin.end('go\n');
  await done;
  expect(calls).toEqual([]);
  expect(io.written.stderr).toContain('refused files/remove: its consent is "ask", and there is no terminal to ask');
  expect(io.written.stdout).toContain('Done.');
});
