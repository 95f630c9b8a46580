import type { PromptText } from './data/records.ts';

/**
 * The prompt with the right answer before it, for the teacher of self-distillation (Shenfeld et al. 2026, Self-Distillation Enables Continual
 * Learning, §3). A chat ends with the same question as without it, after two turns that give exactly this answer: a teacher that may answer
 * in words of its own teaches those. A text to continue gets its own continuation first and then begins again.
 */
export function teacherPrompt(prompt: PromptText, answer: string): PromptText {
  if (typeof prompt === 'string') return `${prompt}${answer}\n\n${prompt}`;
  const last = prompt.findLastIndex(({ role }) => role === 'user');
  if (last === -1) return [...prompt, { role: 'user', content: `You answer exactly: ${answer}` }];
  const question = prompt[last]!.content;
  const turns = [`When you are asked "${question}", you answer exactly: ${answer}`, question].flatMap((content) => [
    { role: 'user' as const, content },
    { role: 'assistant' as const, content: answer },
  ]);
  return [...prompt.slice(0, last), ...turns, ...prompt.slice(last)];
}
