import type { PromptText } from './data/records.ts';

/**
 * The prompt with the right answer in it, for the teacher of self-distillation. A chat gets it in the last question (Shenfeld et al. 2026,
 * Self-Distillation Enables Continual Learning, §3); a text to continue gets its own continuation first and then begins again.
 */
export function teacherPrompt(prompt: PromptText, answer: string): PromptText {
  if (typeof prompt === 'string') return `${prompt}${answer}\n\n${prompt}`;
  const last = prompt.findLastIndex(({ role }) => role === 'user');
  const withAnswer = (question: string): string =>
    `${question}\n\nThis is an example of a response to the question:\n${answer}\n\nNow answer with a response of your own.`;
  if (last === -1) return [...prompt, { role: 'user', content: withAnswer('') }];
  return prompt.map((message, i) => (i === last ? { ...message, content: withAnswer(message.content) } : message));
}
