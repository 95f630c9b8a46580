import { RuvLLMError } from '../../core/errors.ts';
import type { ChatMessage, ToolCall } from '../types.ts';
import { isJsonObject } from './json-reader.ts';

function checkCalls(calls: readonly ToolCall[], i: number): ToolCall[] {
  const ids = new Set<string>();
  return calls.map((call, j) => {
    const where = `messages[${i}].toolCalls[${j}]`;
    if (typeof call.name !== 'string' || call.name === '') {
      throw new RuvLLMError('invalid_option', `${where} has no name`);
    }
    if (typeof call.id !== 'string' || ids.has(call.id)) {
      throw new RuvLLMError('invalid_option', `${where}: id "${call.id}" must be a string, unique within its turn`);
    }
    ids.add(call.id);
    const text = call.arguments.trim() === '' ? '{}' : call.arguments;
    if (!isJsonObject(text)) {
      const preview = JSON.stringify(text.slice(0, 80));
      throw new RuvLLMError(
        'invalid_option',
        `${where} ("${call.name}"): arguments must be a JSON object, got ${preview}`,
      );
    }
    return { ...call, arguments: text };
  });
}

/** The results after the turn at `i`, in the order of its calls, with tool names filled in. */
function orderResults(calls: readonly ToolCall[], results: readonly ChatMessage[], first: number): ChatMessage[] {
  const open = new Map(calls.map((call) => [call.id, call]));
  const order = new Map(calls.map((call, i) => [call.id, i]));
  return results
    .map((result, i) => {
      const id = result.toolCallId ?? open.keys().next().value;
      const call = id === undefined ? undefined : open.get(id);
      if (call === undefined) {
        const callIds = calls.map((one) => one.id).join(', ');
        throw new RuvLLMError(
          'invalid_option',
          `messages[${first + i}]: result of "${id ?? 'no call'}", but the calls before it are [${callIds}], each answered once`,
        );
      }
      open.delete(call.id);
      return { ...result, toolCallId: call.id, name: call.name };
    })
    .sort((a, b) => order.get(a.toolCallId)! - order.get(b.toolCallId)!);
}

/**
 * Checks the calls of a conversation and sorts the results of each turn by its calls, each with its id and tool name.
 * Rejects a result without a matching call before it.
 */
export function normalizeToolMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  const normal: ChatMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    if (message.toolCalls === undefined || message.toolCalls.length === 0) {
      if (message.toolCallId !== undefined) {
        throw new RuvLLMError(
          'invalid_option',
          `messages[${i}]: result of "${message.toolCallId}", which is not a call before it`,
        );
      }
      normal.push(message);
      continue;
    }
    if (message.role !== 'assistant') {
      throw new RuvLLMError(
        'invalid_option',
        `messages[${i}]: only the assistant can call tools, not "${message.role}"`,
      );
    }
    const toolCalls = checkCalls(message.toolCalls, i);
    let end = i + 1;
    while (messages[end]?.role === 'tool') end++;
    normal.push({ ...message, toolCalls }, ...orderResults(toolCalls, messages.slice(i + 1, end), i + 1));
    i = end - 1;
  }
  return normal;
}
