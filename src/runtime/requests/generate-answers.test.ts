import { expect, test } from 'vitest';
import { pieceOf } from '../../../test/support/echo-model.ts';
import { settle } from '../../../test/support/manual-clock.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Model } from '../model.ts';
import { type GenerationRequest, PLAIN_REQUEST } from './generation-request.ts';
import { generateAnswers } from './generate-answers.ts';

const JOB: GenerationRequest = {
  ...PLAIN_REQUEST,
  model: 'm',
  prompts: ['a'],
  numChoices: 3,
  options: { maxTokens: 9 },
};
const LIMITS = { maxTokens: 100, maxCharsPerToken: 32 };

/** Says one word in each answer, then nothing until it is aborted. */
function createStuckModel(): { model: Model; numAborted: () => number } {
  let numAborted = 0;
  const model = {
    modelInfo: () => ({ maxContext: 100 }),
    async *generateStream(_prompt: string, { signal }: { signal: AbortSignal }) {
      yield pieceOf('x', 1);
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      numAborted++;
      throw new RuvLLMError('aborted', 'aborted by the caller');
    },
  } as unknown as Model;
  return { model, numAborted: () => numAborted };
}

async function collectUnheard(work: () => Promise<void>): Promise<unknown[]> {
  const unheard: unknown[] = [];
  const hear = (error: unknown): void => void unheard.push(error);
  process.on('unhandledRejection', hear);
  await work();
  await settle();
  process.off('unhandledRejection', hear);
  return unheard;
}

test('[G2] handles answers that fail before they are read: an unhandled rejection would end the process', async () => {
  const { model, numAborted } = createStuckModel();
  const controller = new AbortController();
  const events = generateAnswers(model, JOB, { tenant: 't', signal: controller.signal }, LIMITS);
  const unheard = await collectUnheard(async () => {
    expect((await events.next()).value).toMatchObject({ choice: 0, text: 'x', finishReason: null });
    await settle();
    controller.abort();
  });
  expect(unheard).toEqual([]);
  expect(numAborted()).toBe(1); // the others wait at their first word for a reader
  for (;;) {
    try {
      if ((await events.next()).done) break;
    } catch (error) {
      expect(error).toMatchObject({ code: 'aborted' });
      break;
    }
  }
});

test('[G2] leaving the stream aborts every answer', async () => {
  const { model, numAborted } = createStuckModel();
  const events = generateAnswers(model, JOB, { tenant: 't', signal: new AbortController().signal }, LIMITS);
  const unheard = await collectUnheard(async () => {
    for (let i = 0; i < 3; i++) await events.next();
    await settle();
    await events.return();
  });
  expect(unheard).toEqual([]);
  expect(numAborted()).toBe(3);
});
