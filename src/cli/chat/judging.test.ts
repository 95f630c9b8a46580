import { expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { createEchoModel } from '../../../test/support/echo-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createOutput } from '../output.ts';
import { createChatHost } from './chat-host.ts';
import { createChatSession } from './session.ts';
import type { Judge } from './slash-commands.ts';

const idle = new AbortController().signal;

/** A chat whose answers have the ids 1, 2, 3 …, and what was said of them. */
function start(answer: () => string = () => 'learned: loss 2 → 1') {
  const io = createFakeIo({ environment: { NO_COLOR: '1' } });
  const model = createEchoModel(100);
  let numAsked = 0;
  const session = createChatSession(model, {}, null, () => String(++numAsked));
  const judged: unknown[] = [];
  const judge: Judge = async (requestId, said) => (judged.push({ requestId, ...said }), answer());
  const contextOf = { io, output: createOutput(io, false) };
  const host = createChatHost(contextOf, model, session, judge);
  const say = async (...lines: string[]): Promise<void> => {
    for (const line of lines) expect(await host.handle(line, idle)).toBe(true);
  };
  return { io, model, session, judged, say, host, contextOf };
}

test('/good, /bad and /correct are about the last answer, and tell what came of it', async () => {
  const { say, judged, io } = start();
  await say('hello', '/good', 'two', '/bad', '/regenerate', '/correct  It is Canberra. ');
  expect(judged).toEqual([
    { requestId: '1', thumbs: 'up' },
    { requestId: '2', thumbs: 'down' },
    { requestId: '3', correction: 'It is Canberra.' },
  ]);
  expect(io.written.stderr.match(/learned: loss 2 → 1/g)).toHaveLength(3);
});

test('without an answer, without a text, and without --learn they say what is missing', async () => {
  const { say, judged, host, contextOf, model, session } = start();
  for (const line of ['/good', '/bad', '/correct x']) {
    await expect(host.handle(line, idle)).rejects.toMatchObject({ message: 'there is no answer yet to judge' });
  }
  await say('hello');
  await expect(host.handle('/correct', idle)).rejects.toMatchObject({ code: 'invalid_option' });
  await say('/clear');
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ message: 'there is no answer yet to judge' });
  await say('hello');
  const deaf = createChatHost(contextOf, model, session, null);
  await expect(deaf.handle('/good', idle)).rejects.toMatchObject({
    message: expect.stringContaining('--learn') as string,
  });
  expect(judged).toEqual([]);
});

test('an answer that was stopped is not judged: nobody knows how it would have ended', async () => {
  const { model, host, say, judged } = start();
  await say('hello');
  model.isStuck = true;
  const stop = new AbortController();
  const asked = host.handle('a b c', stop.signal);
  setTimeout(() => stop.abort(), 5);
  await asked;
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ message: 'there is no answer yet to judge' });
  expect(judged).toEqual([]);
});

test('what is refused is told and does not end the chat; what is broken does', async () => {
  let error = new RuvLLMError('overloaded', 'more than 60 feedbacks a minute; again in 900 ms');
  const { say, io, host } = start(() => {
    throw error;
  });
  await say('hello', '/good');
  error = new RuvLLMError('not_found', 'there is no request to learn from');
  await say('/bad');
  expect(io.written.stderr).toContain('not learned: more than 60 feedbacks a minute; again in 900 ms');
  expect(io.written.stderr).toContain('not learned: there is no request to learn from');
  error = new RuvLLMError('io', 'the disk is full');
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ code: 'io' });
});
