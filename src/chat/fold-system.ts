import type { ChatMessage } from './types.ts';

/** For families without a system turn: prepends its text to the first user turn, or makes it one. */
export function foldSystem(messages: readonly ChatMessage[]): ChatMessage[] {
  const isSystem = (message: ChatMessage): boolean => message.role === 'system' || message.role === 'developer';
  const system = messages.filter(isSystem).map((message) => message.content);
  const turns = messages.filter((message) => !isSystem(message));
  if (system.length === 0) return turns;
  const firstUser = turns.findIndex((message) => message.role === 'user');
  if (firstUser === -1) return [{ role: 'user', content: system.join('\n\n') }, ...turns];
  return turns.map((message, i) =>
    i === firstUser ? { ...message, content: [...system, message.content].join('\n\n') } : message,
  );
}
