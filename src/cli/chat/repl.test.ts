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
  const heard = (text: string) =>
    vi.waitFor(() => expect(io.written.stdout + io.written.stderr).toContain(text), { timeout: 300_000 });
  return { io, model, session, host, done, heard };
}

const CTRL_C = '\x03';
const CTRL_D = '\x04';

test('answers lines until Ctrl-D', async () => {
  const { io, done, heard, host } = start();
  io.stdin.write('hello\r');
  await heard('re: hello');
  io.stdin.write('two\\\rlines\r');
  await heard('re: two lines');
  io.stdin.write(CTRL_D);
  await done;
  expect(io.written.stdout).toBe('re: hello\nre: two lines\n');
  expect(host.turns).toHaveLength(2);
});

test('Ctrl-C stops the answer, the next one leaves', async () => {
  const { io, model, session, done, heard } = start();
  model.isStuck = true;
  io.stdin.write('a b c\r');
  await heard('re:');
  io.stdin.write(CTRL_C);
  await heard('stopped');
  expect(session.messages.at(-1)).toEqual({ role: 'assistant', content: 're:' });
  io.stdin.write(CTRL_C);
  await done;
});

test('Ctrl-C without an answer first takes the line away, then asks, then leaves', async () => {
  const { io, done, heard } = start();
  io.stdin.write('half a li');
  await heard('half a li');
  io.stdin.write(CTRL_C);
  io.stdin.write('other\r');
  await heard('re: other');
  io.stdin.write(CTRL_C);
  await heard('Ctrl-C again');
  io.stdin.write(CTRL_C);
  await done;
  expect(io.written.stdout).toBe('re: other\n');
});

test('errors that another line can cure do not end the chat', async () => {
  const { io, done, heard } = start({ maxContext: 4 });
  io.stdin.write('/nope\r');
  await heard('error: unknown command /nope; /help shows those there are');
  io.stdin.write('a b c d e\r');
  await heard('error: 5 of 4; /clear starts a new conversation');
  io.stdin.write('/exit\r');
  await done;
});

test('slash commands', async () => {
  const { io, session, model, done, heard } = start();
  io.stdin.write('/help\r');
  await heard('/system TEXT');
  io.stdin.write('/system be brief\rhi\r');
  await heard('re: hi');
  expect(model.calls[0]!.messages[0]).toEqual({ role: 'system', content: 'be brief' });
  io.stdin.write('/stats\r');
  await heard('2 messages, 3 of 100 tokens of context');
  io.stdin.write('/regenerate\r');
  await heard('re: hi\nre: hi\n');
  io.stdin.write('/clear\r');
  await heard('forgotten');
  expect(session.messages).toEqual([]);
  io.stdin.write('what is /etc\r'); // a slash inside is no command
  await heard('re: what is /etc');
  io.stdin.write('/exit\r');
  await done;
});

const PASTE = (text: string): string => `\x1b[200~${text}\x1b[201~`;

test('several lines: between quotes, and pasted ones wait for Enter', async () => {
  const { io, model, done, heard } = start();
  io.stdin.write('"""\rone\rtwo\r"""\r');
  await heard('re: one two');
  expect(model.calls[0]!.messages.at(-1)!.content).toBe('one\ntwo');
  io.stdin.write(PASTE('three\nfour\nfi'));
  await heard('fi');
  expect(model.calls).toHaveLength(1);
  io.stdin.write('ve\r');
  await heard('re: three four five');
  expect(model.calls[1]!.messages.at(-1)!.content).toBe('three\nfour\nfive');
  io.stdin.write(PASTE('dropped\n'));
  io.stdin.write(`${CTRL_C}six\r`);
  await heard('re: six');
  io.stdin.write(CTRL_D);
  await done;
  expect(io.written.stderr.startsWith('\x1b[?2004h')).toBe(true);
  expect(io.written.stderr).toContain('\x1b[?2004l');
});

test('↑ brings back what was typed, in this chat and the ones before; what begins with a space is not kept', async () => {
  const added: string[][] = [];
  const { io, done, heard, model } = start({
    history: { load: () => ['from before'], add: (lines) => void added.push([...lines]) },
  });
  io.stdin.write('first\r');
  await heard('re: first');
  io.stdin.write(' hidden\r');
  await heard('re: hidden');
  io.stdin.write('\x1b[A\x1b[A\r');
  await heard('re: from before');
  io.stdin.write(CTRL_D);
  await done;
  expect(model.calls.map(({ messages }) => messages.at(-1)!.content)).toEqual(['first', ' hidden', 'from before']);
  expect(added).toEqual([['from before', 'first']]);
});

test('a signal to the process ends an answer and the chat', async () => {
  const { io, model, done, heard } = start();
  model.isStuck = true;
  io.stdin.write('a b\r');
  await heard('re:');
  io.controller.abort('SIGTERM');
  await expect(done).rejects.toMatchObject({ code: 'aborted' });
});

test('piped: every line is a turn, the end is the end', async () => {
  const { io, done } = start({ isTerminal: false });
  io.stdin.end('one\n\ntwo\\\nthree\nfour');
  await done;
  expect(io.written).toEqual({ stdout: 're: one\nre: two three\nre: four\n', stderr: '' });
});

test('piped: nothing at all is fine', async () => {
  const { io, done } = start({ isTerminal: false });
  io.stdin.end();
  await done;
  expect(io.written).toEqual({ stdout: '', stderr: '' });
});

test('piped: the first turn that fails ends it', async () => {
  const { io, done } = start({ isTerminal: false, maxContext: 3 });
  io.stdin.end('a b c d\ne\n');
  await expect(done).rejects.toMatchObject({ code: 'context_overflow', data: { promptTokens: 4, maxContext: 3 } });
  expect(io.written.stdout).toBe('');
});
