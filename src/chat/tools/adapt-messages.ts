import { indentLines, joinLines } from '../../core/line-ends.ts';
import type { ChatMessage, ToolCall } from '../types.ts';
import type { ToolDialect } from './dialect.ts';
import { normalizeToolMessages } from './normalize.ts';

type TemplateMessage = Record<string, unknown>;

/** The messages in the form the template expects. */
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

/** Turns the template can render: single calls, or calls as text, if it supports nothing better. */
function splitTurns(messages: readonly ChatMessage[], dialect: ToolDialect): ChatMessage[] {
  const turns: ChatMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    const { toolCalls, ...turn } = message;
    if (toolCalls === undefined || toolCalls.length === 0) {
      turns.push(...showResult(turn, dialect, turns.at(-1)));
      continue;
    }
    let end = i + 1;
    while (messages[end]?.toolCallId !== undefined) end++;
    const results = messages.slice(i + 1, end);
    i = end - 1;
    if (!dialect.showsCalls) {
      const callText = dialect.format.write?.(toolCalls) ?? '';
      turns.push({ ...turn, content: [turn.content, callText].filter((text) => text !== '').join('\n') });
      for (const result of results) turns.push(...showResult(result, dialect, turns.at(-1)));
      continue;
    }
    let content = turn.content;
    if (content !== '' && !dialect.keepsContentBesideCalls) {
      turns.push({ ...turn });
      content = '';
    }
    if (dialect.allowsParallel || toolCalls.length === 1) {
      turns.push({ ...message, content }, ...results);
      continue;
    }
    toolCalls.forEach((call, j) => {
      turns.push({ ...(j === 0 ? { ...turn, content } : { role: turn.role, content: '' }), toolCalls: [call] });
      turns.push(...results.filter((result) => result.toolCallId === call.id));
    });
  }
  return turns;
}

/** A result in the form the template shows, or appended to `last` if that is a user turn. */
function showResult(message: ChatMessage, dialect: ToolDialect, last: ChatMessage | undefined): ChatMessage[] {
  if (message.role !== 'tool' || dialect.showsResults) return [message];
  // Indented, because the same turn may have words of the user and further results.
  const text = `Result of ${joinLines(message.name ?? 'the tool')}:\n  ${indentLines(message.content)}`;
  if (last?.role !== 'user') return [{ role: 'user', content: text }];
  last.content += `\n\n${text}`;
  return [];
}
