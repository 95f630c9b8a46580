import { expect, test } from 'vitest';
import { createFakeIo } from '../../../test/support/cli-io.ts';
import { createEchoModel } from '../../../test/support/echo-model.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createOutput } from '../output.ts';
import { createChatHost } from './chat-host.ts';
import { createChatSession } from './session.ts';
import type { SendFeedback } from './slash-commands.ts';

const idle = new AbortController().signal;

/** A chat with request ids 1, 2, 3 … that records feedback. */
function start(answer: () => string = () => 'learned: loss 2 → 1') {
  const io = createFakeIo({ environment: { NO_COLOR: '1' } });
  const model = createEchoModel(100);
  let numRequests = 0;
  const session = createChatSession(model, {}, null, () => String(++numRequests));
  const feedbacks: unknown[] = [];
  const sendFeedback: SendFeedback = async (feedback) => (feedbacks.push(feedback), answer());
  const context = { io, output: createOutput(io, false) };
  const host = createChatHost(context, model, session, sendFeedback);
  const say = async (...lines: string[]): Promise<void> => {
    for (const line of lines) expect(await host.handle(line, idle)).toBe(true);
  };
  return { io, model, session, feedbacks, say, host, context };
}

test('/good, /bad and /correct rate the last answer and report the outcome', async () => {
  const { say, feedbacks, io } = start();
  await say('hello', '/good', 'two', '/bad', '/regenerate', '/correct  It is Canberra. ');
  expect(feedbacks).toEqual([
    { requestId: '1', thumbs: 'up' },
    { requestId: '2', thumbs: 'down' },
    { requestId: '3', correction: 'It is Canberra.' },
  ]);
  expect(io.written.stderr.match(/learned: loss 2 → 1/g)).toHaveLength(3);
});

test('rejects feedback without an answer, a correction without text, and both without --learn', async () => {
  const { say, feedbacks, host, context, model, session } = start();
  for (const line of ['/good', '/bad', '/correct x']) {
    await expect(host.handle(line, idle)).rejects.toMatchObject({ message: 'no answer to rate yet' });
  }
  await say('hello');
  await expect(host.handle('/correct', idle)).rejects.toMatchObject({ code: 'invalid_option' });
  await say('/clear');
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ message: 'no answer to rate yet' });
  await say('hello');
  const withoutLearning = createChatHost(context, model, session, null);
  await expect(withoutLearning.handle('/good', idle)).rejects.toMatchObject({
    message: expect.stringContaining('--learn') as string,
  });
  expect(feedbacks).toEqual([]);
});

test('rejects feedback on a stopped answer, which is incomplete', async () => {
  const { model, host, say, feedbacks } = start();
  await say('hello');
  model.isStuck = true;
  const stop = new AbortController();
  const turn = host.handle('a b c', stop.signal);
  setTimeout(() => stop.abort(), 5);
  await turn;
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ message: 'no answer to rate yet' });
  expect(feedbacks).toEqual([]);
});

test('continues after refused feedback, but not after other errors', async () => {
  let error = new RuvLLMError('overloaded', 'more than 60 ratings per minute; try again in 900 ms');
  const { say, io, host } = start(() => {
    throw error;
  });
  await say('hello', '/good');
  error = new RuvLLMError('not_found', 'there is no request to learn from');
  await say('/bad');
  expect(io.written.stderr).toContain('not learned: more than 60 ratings per minute; try again in 900 ms');
  expect(io.written.stderr).toContain('not learned: there is no request to learn from');
  error = new RuvLLMError('io', 'the disk is full');
  await expect(host.handle('/good', idle)).rejects.toMatchObject({ code: 'io' });
});
