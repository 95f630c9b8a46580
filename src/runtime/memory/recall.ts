import type { ChatMessage } from '../../chat/types.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { isChat, type Prompt } from '../prompt.ts';

/** Search query of a request: the last user message, or the text to continue. Empty if there is none. */
export function queryOf(prompt: Prompt): string {
  if (typeof prompt === 'string') return prompt;
  if (!isChat(prompt)) return '';
  return (prompt as readonly ChatMessage[]).findLast(({ role }) => role === 'user')?.content ?? '';
}

/**
 * Puts remembered texts before the last thing the user said. Not into the system turn: everything before the question stays as it was,
 * and known to the prefix cache.
 */
export function addContext(prompt: Prompt, context: string): Prompt {
  if (typeof prompt === 'string') return `${context}\n${prompt}`;
  const messages = isChat(prompt) ? (prompt as readonly ChatMessage[]) : [];
  const last = messages.findLastIndex(({ role }) => role === 'user');
  if (last < 0) {
    throw new RuvLLMError('invalid_option', 'option "memory" needs a text, or messages with one of the user');
  }
  const intro = 'These texts may help with the question; refer to them by number where they do.';
  const question = messages[last]!;
  return messages.with(last, { ...question, content: `${intro}\n${context}\n${question.content}` });
}
