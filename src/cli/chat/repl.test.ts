import { expect, test, vi } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { createEchoModel } from '../../../test/support/echo-model.ts';
import { createOutput } from '../output.ts';
import { createChatHost } from './chat-host.ts';
import type { History } from './history-file.ts';
import { runPiped } from './piped.ts';
import { runRepl } from './repl.ts';
import { createChatSession } from './session.ts';

function start({ isTerminal = true, maxContext = 100, history = null as History | null } = {}) {
  const io = createFakeIo({ isTerminal, environment: { NO_COLOR: '1' } });
  const output = createOutput(io, false);
  const model = createEchoModel(maxContext);
  const session = createChatSession(model, {}, null);
  const host = createChatHost({ io, output }, model, session);
  const done = isTerminal ? runRepl({ io, output }, host, history) : runPiped(io, host);
  const waitForOutput = (text: string) =>
    vi.waitFor(() => expect(io.written.stdout + io.written.stderr).toContain(text), { timeout: 300_000 });
  return { io, model, session, host, done, waitForOutput };
}

const CTRL_C = '\x03';
const CTRL_D = '\x04';

test('answers lines until Ctrl-D', async () => {
  const { io, done, waitForOutput, host } = start();
  io.stdin.write('hello\r');
  await waitForOutput('re: hello');
  io.stdin.write('two\\\rlines\r');
  await waitForOutput('re: two lines');
  io.stdin.write(CTRL_D);
  await done;
  expect(io.written.stdout).toBe('re: hello\nre: two lines\n');
  expect(host.turns).toHaveLength(2);
});

test('Ctrl-C stops the answer, a second Ctrl-C exits', async () => {
  const { io, model, session, done, waitForOutput } = start();
  model.isStuck = true;
  io.stdin.write('a b c\r');
  await waitForOutput('re:');
  io.stdin.write(CTRL_C);
  await waitForOutput('stopped');
  expect(session.messages.at(-1)).toEqual({ role: 'assistant', content: 're:' });
  io.stdin.write(CTRL_C);
  await done;
});

test('Ctrl-C at the prompt clears the line, then warns, then exits', async () => {
  const { io, done, waitForOutput } = start();
  io.stdin.write('half a li');
  await waitForOutput('half a li');
  io.stdin.write(CTRL_C);
  io.stdin.write('other\r');
  await waitForOutput('re: other');
  io.stdin.write(CTRL_C);
  await waitForOutput('Ctrl-C again');
  io.stdin.write(CTRL_C);
  await done;
  expect(io.written.stdout).toBe('re: other\n');
});

test('continues after recoverable errors', async () => {
  const { io, done, waitForOutput } = start({ maxContext: 4 });
  io.stdin.write('/nope\r');
  await waitForOutput('error: unknown command /nope; /help lists the commands');
  io.stdin.write('a b c d e\r');
  await waitForOutput('error: 5 of 4; /clear starts a new conversation');
  io.stdin.write('/exit\r');
  await done;
});

test('runs slash commands', async () => {
  const { io, session, model, done, waitForOutput } = start();
  io.stdin.write('/help\r');
  await waitForOutput('/system TEXT');
  io.stdin.write('/system be brief\rhi\r');
  await waitForOutput('re: hi');
  expect(model.calls[0]!.messages[0]).toEqual({ role: 'system', content: 'be brief' });
  io.stdin.write('/stats\r');
  await waitForOutput('2 messages, 3 of 100 context tokens');
  io.stdin.write('/regenerate\r');
  await waitForOutput('re: hi\nre: hi\n');
  io.stdin.write('/clear\r');
  await waitForOutput('conversation cleared');
  expect(session.messages).toEqual([]);
  io.stdin.write('what is /etc\r'); // a slash inside a line is not a command
  await waitForOutput('re: what is /etc');
  io.stdin.write('/exit\r');
  await done;
});

const PASTE = (text: string): string => `\x1b[200~${text}\x1b[201~`;

test('joins quoted lines, and holds pasted lines until Enter', async () => {
  const { io, model, done, waitForOutput } = start();
  io.stdin.write('"""\rone\rtwo\r"""\r');
  await waitForOutput('re: one two');
  expect(model.calls[0]!.messages.at(-1)!.content).toBe('one\ntwo');
  io.stdin.write(PASTE('three\nfour\nfi'));
  await waitForOutput('fi');
  expect(model.calls).toHaveLength(1);
  io.stdin.write('ve\r');
  await waitForOutput('re: three four five');
  expect(model.calls[1]!.messages.at(-1)!.content).toBe('three\nfour\nfive');
  io.stdin.write(PASTE('dropped\n'));
  io.stdin.write(`${CTRL_C}six\r`);
  await waitForOutput('re: six');
  io.stdin.write(CTRL_D);
  await done;
  expect(io.written.stderr.startsWith('\x1b[?2004h')).toBe(true);
  expect(io.written.stderr).toContain('\x1b[?2004l');
});

test('↑ recalls lines of this and earlier chats, except those with a leading space', async () => {
  const additions: string[][] = [];
  const { io, done, waitForOutput, model } = start({
    history: { load: () => ['from before'], add: (lines) => void additions.push([...lines]) },
  });
  io.stdin.write('first\r');
  await waitForOutput('re: first');
  io.stdin.write(' hidden\r');
  await waitForOutput('re: hidden');
  io.stdin.write('\x1b[A\x1b[A\r');
  await waitForOutput('re: from before');
  io.stdin.write(CTRL_D);
  await done;
  expect(model.calls.map(({ messages }) => messages.at(-1)!.content)).toEqual(['first', ' hidden', 'from before']);
  expect(additions).toEqual([['from before', 'first']]);
});

test('a signal aborts the answer and the chat', async () => {
  const { io, model, done, waitForOutput } = start();
  model.isStuck = true;
  io.stdin.write('a b\r');
  await waitForOutput('re:');
  io.controller.abort('SIGTERM');
  await expect(done).rejects.toMatchObject({ code: 'aborted' });
});

test('runs every piped line as a turn', async () => {
  const { io, done } = start({ isTerminal: false });
  io.stdin.end('one\n\ntwo\\\nthree\nfour');
  await done;
  expect(io.written).toEqual({ stdout: 're: one\nre: two three\nre: four\n', stderr: '' });
});

test('accepts empty piped input', async () => {
  const { io, done } = start({ isTerminal: false });
  io.stdin.end();
  await done;
  expect(io.written).toEqual({ stdout: '', stderr: '' });
});

test('stops piped input at the first error', async () => {
  const { io, done } = start({ isTerminal: false, maxContext: 3 });
  io.stdin.end('a b c d\ne\n');
  await expect(done).rejects.toMatchObject({ code: 'context_overflow', data: { promptTokens: 4, maxContext: 3 } });
  expect(io.written.stdout).toBe('');
});
