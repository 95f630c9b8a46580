import { expect, test } from 'vitest';
import { createSpokenModel, THINKING_TEMPLATE } from '../../test/support/spoken-model.ts';
import { collectAnswer } from './collect-answer.ts';

test('shows reasoning before the answer and keeps it out of the text', async () => {
  const { model } = createSpokenModel(['<think>\nhm\n</think>\n\nYes.'], { template: THINKING_TEMPLATE });
  let output = '';
  const messages = [{ role: 'user' as const, content: 'x' }];
  const answer = await collectAnswer(model.generateStream(messages, { maxTokens: 90 }), (piece) => (output += piece));
  expect(output).toBe('hm\n\nYes.');
  expect(answer).toMatchObject({ text: 'Yes.', reasoning: 'hm' });
});
