import type { ChatMessage } from './types.ts';

/** For families without a system turn: its text goes in front of the first user turn, or becomes one. */
export function foldSystem(messages: readonly ChatMessage[]): ChatMessage[] {
  const isSystem = (message: ChatMessage): boolean => message.role === 'system' || message.role === 'developer';
  const system = messages.filter(isSystem).map((message) => message.content);
  const rest = messages.filter((message) => !isSystem(message));
  if (system.length === 0) return rest;
  const firstUser = rest.findIndex((message) => message.role === 'user');
  if (firstUser === -1) return [{ role: 'user', content: system.join('\n\n') }, ...rest];
  return rest.map((message, i) =>
    i === firstUser ? { ...message, content: [...system, message.content].join('\n\n') } : message,
  );
}
