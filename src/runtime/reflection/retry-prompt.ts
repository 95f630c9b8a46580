import type { ChatMessage } from '../../chat/types.ts';
import type { CheckedAnswer } from './types.ts';

/** A longer attempt would take the place of the conversation. */
const MAX_SHOWN = 2000;
const MAX_ERRORS = 4;

const spell = ({ text, toolCalls }: CheckedAnswer): string => {
  const calls = toolCalls.map(({ name, arguments: args }) => `{"name": ${JSON.stringify(name)}, "arguments": ${args}}`);
  return [text, ...calls]
    .filter((part) => part !== '')
    .join('\n')
    .slice(0, MAX_SHOWN)
    .toWellFormed();
};

/** The conversation with a failed attempt and its errors. Only the last attempt is shown: more would teach the mistakes. */
export function withErrors(
  messages: readonly ChatMessage[],
  attempt: CheckedAnswer,
  errors: readonly string[],
): readonly ChatMessage[] {
  const shown = errors.slice(0, MAX_ERRORS).map((error) => `- ${error}`);
  const request = ['Your last answer cannot be used:', ...shown, 'Answer my request again without this mistake. Give only the answer.']; // prettier-ignore
  return [
    ...messages,
    { role: 'assistant', content: spell(attempt) },
    { role: 'user', content: request.join('\n').toWellFormed() },
  ];
}

/** The conversation with errors of earlier requests in its system message. */
export function withPatterns(messages: readonly ChatMessage[], patterns: readonly string[]): readonly ChatMessage[] {
  if (patterns.length === 0) return messages;
  const note = ['Avoid these mistakes of earlier answers:', ...patterns.map((one) => `- ${one}`)].join('\n');
  const [first, ...rest] = messages;
  if (first?.role !== 'system') return [{ role: 'system', content: note }, ...messages];
  return [{ ...first, content: `${first.content}\n\n${note}` }, ...rest];
}
