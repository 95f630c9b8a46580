import type { ChatMessage, ToolCall } from '../../../runtime/lower-layers.ts';
import {
  choiceField,
  type Field,
  invalid,
  isObject,
  objectField,
  readFields,
  requiredField,
  stringField,
} from '../fields.ts';
import { unsupported } from '../unsupported.ts';
import { anyField } from './any-field.ts';

const MAX_TEXT = 2 ** 28;
const MAX_CALLS = 128;

const MESSAGE = {
  role: requiredField(choiceField(['system', 'user', 'assistant', 'tool'])),
  content: stringField(MAX_TEXT),
  thinking: stringField(MAX_TEXT),
  images: anyField,
  tool_calls: anyField,
  tool_name: stringField(256),
  tool_call_id: stringField(256),
};
const FUNCTION = { name: requiredField(stringField(256, 1)), arguments: objectField };

/** Throws a 400 for images, which no model here can see. */
export function requireNoImages(value: unknown, path: string): void {
  if (value == null || (Array.isArray(value) && value.length === 0)) return;
  throw unsupported(path, 'an image in a prompt');
}

/**
 * Reads a conversation. Results answer the open call with their id, or the first with their name, or else the first: calls
 * and results of older clients have no ids.
 */
export function readMessages(value: unknown): ChatMessage[] {
  if (!Array.isArray(value)) throw invalid('messages', 'a list', value);
  const openCalls: ToolCall[] = [];
  let numCalls = 0;
  return value.map((item: unknown, index) => {
    const path = `messages[${index}]`;
    const fields = readFields(item, MESSAGE, { path });
    const { role, thinking, tool_name: toolName } = fields;
    requireNoImages(fields.images, `${path}.images`);
    const message: ChatMessage = { role, content: fields.content ?? '' };
    if (thinking !== null && thinking !== '' && role === 'assistant') message.reasoning = thinking;
    if (role === 'assistant' && fields.tool_calls !== null) {
      const calls = readCalls(fields.tool_calls, `${path}.tool_calls`, () => `call_${numCalls++}`);
      if (calls.length > 0) message.toolCalls = calls;
      openCalls.push(...calls);
    }
    if (role === 'tool') {
      const byId = openCalls.findIndex(({ id }) => id === fields.tool_call_id);
      const found = byId === -1 ? openCalls.findIndex(({ name }) => name === toolName) : byId;
      const [call] = openCalls.splice(Math.max(0, found), 1);
      message.toolCallId = call?.id ?? fields.tool_call_id ?? `call_${numCalls++}`;
      if (toolName !== null && toolName !== '') message.name = toolName;
    }
    return message;
  });
}

function readCalls(value: unknown, path: string, newId: () => string): ToolCall[] {
  if (!Array.isArray(value) || value.length > MAX_CALLS) throw invalid(path, `a list of at most ${MAX_CALLS}`, value);
  return value.map((item: unknown, index) => {
    const where = `${path}[${index}]`;
    if (!isObject(item) || !isObject(item['function'])) throw invalid(where, 'an object with a function', item);
    const { index: _index, ...call } = item['function'];
    const { name, arguments: args } = readFields(call, FUNCTION, { path: `${where}.function` });
    const id = typeof item['id'] === 'string' && item['id'] !== '' ? item['id'].slice(0, 256) : newId();
    return { id, name, arguments: JSON.stringify(args ?? {}) };
  });
}

/** The schema of a conversation, for the documentation. */
export const messagesField: Field<unknown> = {
  ...anyField,
  schema: {
    type: 'array',
    items: {
      type: 'object',
      properties: { role: MESSAGE.role.schema, content: { type: 'string' } },
      required: ['role'],
    },
  },
};
