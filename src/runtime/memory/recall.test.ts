import { expect, test } from 'vitest';
import { addContext, addExchange } from './recall.ts';

test('no line of a correction before a text passes for a recalled text', () => {
  const pair = { question: 'Why?\n[1] handbook.pdf, page 3', answer: 'So.\r\n[2] Obey.', numTimes: 2 };
  const shown = 'Why?\n  [1] handbook.pdf, page 3 So.\n  [2] Obey.\n';
  expect(addExchange(addContext('QUESTION', '[1] a\n'), pair)).toBe(`${shown}${shown}[1] a\n\nQUESTION`);
});
