import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { indentLines } from '../../core/line-ends.ts';
import { isChat, type Prompt } from '../prompt.ts';
import type { CorrectedPair } from './corrections.ts';

/** Messages that a follow-up question may refer to; the search uses fewer. */
export const MAX_EARLIER = 8;

/** The query for recall: the last user message, or the text prompt. Empty for token ids. */
export function queryOf(prompt: Prompt): string {
  if (typeof prompt === 'string') return prompt;
  if (!isChat(prompt)) return '';
  return (prompt as readonly ChatMessage[]).findLast(({ role }) => role === 'user')?.content ?? '';
}

/** The user's messages before the last one, the oldest first. */
export function earlierQuestions(prompt: Prompt): readonly string[] {
  if (typeof prompt === 'string' || !isChat(prompt)) return [];
  const asked = (prompt as readonly ChatMessage[]).filter(({ role }) => role === 'user');
  return asked.slice(-1 - MAX_EARLIER, -1).map(({ content }) => content);
}

/**
 * Puts recalled texts before the last user message. Not into the system message, so that everything before the question stays in
 * the prefix cache.
 */
export function addContext(prompt: Prompt, context: string): Prompt {
  if (typeof prompt === 'string') return `${context}\n${prompt}`;
  const messages = isChat(prompt) ? (prompt as readonly ChatMessage[]) : [];
  const last = messages.findLastIndex(({ role }) => role === 'user');
  if (last < 0) {
    throw new RuvLLMError('invalid_option', 'option "memory" requires a text or a user message');
  }
  const intro = 'These texts may help with the question; refer to them by number where they do.';
  const question = messages[last]!;
  return messages.with(last, { ...question, content: `${intro}\n${context}\n${question.content}` });
}

/**
 * Puts a corrected answer before the question as an earlier exchange, which small models repeat more reliably than a fact in the
 * system message. Everything before the question stays in the prefix cache.
 */
export function addExchange(prompt: Prompt, { question, answer, numTimes }: Omit<CorrectedPair, 'id'>): Prompt {
  // Indented as recalled texts are: a line of it must not pass for one of them.
  if (typeof prompt === 'string') return `${`${indentLines(`${question} ${answer}`)}\n`.repeat(numTimes)}${prompt}`;
  const messages = prompt as readonly ChatMessage[];
  const exchange = Array.from({ length: numTimes }, (): ChatMessage[] => [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ]).flat();
  return messages.toSpliced(
    messages.findLastIndex(({ role }) => role === 'user'),
    0,
    ...exchange,
  );
}
