import { expect, test } from 'vitest';
import { createSpokenModel, THINKING_TEMPLATE } from '../../test/support/spoken-model.ts';
import { collectAnswer } from './collect-answer.ts';

test('what is thought is shown before what is said, and is no part of it', async () => {
  const { model } = createSpokenModel(['<think>\nhm\n</think>\n\nYes.'], { template: THINKING_TEMPLATE });
  let shown = '';
  const messages = [{ role: 'user' as const, content: 'x' }];
  const answer = await collectAnswer(model.generateStream(messages, { maxTokens: 90 }), (piece) => (shown += piece));
  expect(shown).toBe('hm\n\nYes.');
  expect(answer).toMatchObject({ text: 'Yes.', reasoning: 'hm' });
});
