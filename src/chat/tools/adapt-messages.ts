import type { ChatMessage, ToolCall } from '../types.ts';
import type { ToolDialect } from './dialect.ts';
import { normalizeToolMessages } from './normalize.ts';

type TemplateMessage = Record<string, unknown>;

/** The messages as the template wants to see them. */
export function adaptMessages(messages: readonly ChatMessage[], dialect: ToolDialect): TemplateMessage[] {
  let total = 0;
  const ids = new Map<string, string>();
  const nameCall = (call: ToolCall, index: number): string => {
    const family = dialect.format.callId?.(call.name, index, total);
    const short = `call${total.toString(36).padStart(5, '0')}`;
    ids.set(call.id, family ?? (dialect.idForm === 'alnum9' ? short : call.id));
    total++;
    return ids.get(call.id)!;
  };
  const turns = splitTurns(normalizeToolMessages(messages), dialect);
  return turns.map((message) => {
    const { role, content, name, reasoning, toolCalls, toolCallId } = message;
    const adapted: TemplateMessage = { role, content };
    if (name !== undefined) adapted['name'] = name;
    if (toolCallId !== undefined) adapted['tool_call_id'] = ids.get(toolCallId) ?? toolCallId;
    const isShown = dialect.keepsContentBesideReasoning || content === '' || toolCalls === undefined;
    if (reasoning !== undefined && dialect.reasoningField !== null && isShown) {
      adapted[dialect.reasoningField] = reasoning;
    }
    if (toolCalls === undefined) return adapted;
    adapted['tool_calls'] = toolCalls.map((call, index) => ({
      id: nameCall(call, index),
      type: 'function',
      function: {
        name: call.name,
        arguments: dialect.argumentsForm === 'text' ? call.arguments : (JSON.parse(call.arguments) as object),
      },
    }));
    if (content === '') adapted['content'] = dialect.emptyContent;
    return adapted;
  });
}

/** Turns that the template can write: calls one by one, or as text, where it knows no better. */
function splitTurns(messages: readonly ChatMessage[], dialect: ToolDialect): ChatMessage[] {
  const turns: ChatMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    const { toolCalls, ...rest } = message;
    if (toolCalls === undefined || toolCalls.length === 0) {
      turns.push(...showResult(rest, dialect, turns.at(-1)));
      continue;
    }
    let end = i + 1;
    while (messages[end]?.toolCallId !== undefined) end++;
    const results = messages.slice(i + 1, end);
    i = end - 1;
    if (!dialect.showsCalls) {
      const written = dialect.format.write?.(toolCalls) ?? '';
      turns.push({ ...rest, content: [rest.content, written].filter((text) => text !== '').join('\n') });
      for (const result of results) turns.push(...showResult(result, dialect, turns.at(-1)));
      continue;
    }
    let content = rest.content;
    if (content !== '' && !dialect.keepsContentBesideCalls) {
      turns.push({ ...rest });
      content = '';
    }
    if (dialect.allowsParallel || toolCalls.length === 1) {
      turns.push({ ...message, content }, ...results);
      continue;
    }
    toolCalls.forEach((call, j) => {
      turns.push({ ...(j === 0 ? { ...rest, content } : { role: rest.role, content: '' }), toolCalls: [call] });
      turns.push(...results.filter((result) => result.toolCallId === call.id));
    });
  }
  return turns;
}

/** A result in the form the template shows; `last` is taken back where one turn must hold several results. */
function showResult(message: ChatMessage, dialect: ToolDialect, last: ChatMessage | undefined): ChatMessage[] {
  if (message.role !== 'tool' || dialect.showsResults) return [message];
  const text = `Result of ${message.name ?? 'the tool'}:\n${message.content}`;
  if (last?.role !== 'user') return [{ role: 'user', content: text }];
  last.content += `\n\n${text}`;
  return [];
}
