import { expect, test } from 'vitest';
import { teacherPrompt } from './teacher-prompt.ts';

test('[TR14] the prompt of the teacher ends like that of the student, after turns that give exactly the right answer', () => {
  const chat = [
    { role: 'system' as const, content: 'Be kind.' },
    { role: 'user' as const, content: 'Hi' },
    { role: 'assistant' as const, content: 'Hello!' },
    { role: 'user' as const, content: 'How long is a marathon?' },
  ];
  const turns = teacherPrompt(chat, '42.2 km') as typeof chat;
  expect(turns.slice(0, 3)).toEqual(chat.slice(0, 3));
  expect(turns.slice(3).map(({ role, content }) => `${role}: ${content}`)).toEqual([
    'user: When you are asked "How long is a marathon?", you answer exactly: 42.2 km',
    'assistant: 42.2 km',
    'user: How long is a marathon?',
    'assistant: 42.2 km',
    'user: How long is a marathon?',
  ]);
  expect(teacherPrompt('2 + 2 =', ' 4')).toBe('2 + 2 = 4\n\n2 + 2 =');
  expect(teacherPrompt(chat.slice(0, 1), 'Welcome.').at(-1)).toEqual({ role: 'user', content: 'You answer exactly: Welcome.' }); // prettier-ignore
});
