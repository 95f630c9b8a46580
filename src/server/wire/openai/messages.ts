import type { ChatMessage } from '../../../chat/types.ts';
import { choiceField, type Field, invalid, isObject, readFields, required, stringField } from '../fields.ts';
import { unsupported } from '../unsupported.ts';

const MAX_TEXT = 2 ** 28;
const MAX_PARTS = 4096;

interface MessageFields {
  role: ChatMessage['role'];
  content: string;
  name: string;
}

/** Text, or a list of parts that are all text. */
const contentField: Field<string> = {
  schema: {
    oneOf: [
      { type: 'string' },
      {
        type: 'array',
        items: {
          type: 'object',
          properties: { type: { type: 'string', enum: ['text'] }, text: { type: 'string' } },
          required: ['type', 'text'],
        },
      },
    ],
  },
  read(value, path) {
    if (typeof value === 'string') return value;
    if (!Array.isArray(value) || value.length > MAX_PARTS) {
      throw invalid(path, `a string or a list of at most ${MAX_PARTS} parts`, value);
    }
    return value.map((part, index) => readPart(part, `${path}[${index}]`)).join('');
  },
};

function readPart(part: unknown, path: string): string {
  if (!isObject(part)) throw invalid(path, 'an object', part);
  if (part['type'] !== 'text') {
    const type = typeof part['type'] === 'string' ? JSON.stringify(part['type'].slice(0, 40)) : 'without a type';
    throw unsupported(`${path}.type`, `a content part ${type}`);
  }
  const { text } = readFields<{ type: string; text: string }>(
    part,
    { type: stringField(40), text: stringField(MAX_TEXT) },
    { path, ignored: ['prompt_cache_breakpoint'] },
  );
  return required(text, `${path}.text`);
}

const MESSAGE_FIELDS = {
  role: choiceField(['system', 'developer', 'user', 'assistant', 'tool']),
  content: contentField,
  name: stringField(256),
} as const;

/** A message of a conversation. */
export const messageField: Field<ChatMessage> = {
  schema: {
    type: 'object',
    properties: Object.fromEntries(Object.entries(MESSAGE_FIELDS).map(([name, { schema }]) => [name, schema])),
    required: ['role', 'content'],
  },
  read(value, path) {
    if (isObject(value)) refuseToolParts(value, path);
    const { role, content, name } = readFields<MessageFields>(value, MESSAGE_FIELDS, {
      path,
      ignored: ['refusal', 'annotations', 'audio', 'function_call', 'tool_calls'],
    });
    const message: ChatMessage = {
      role: required(role, `${path}.role`),
      content: required(content, `${path}.content`),
    };
    return name === null ? message : { ...message, name };
  },
};

/** What clients send back of answers is often there and null; only what is really there is refused. */
function refuseToolParts(message: Readonly<Record<string, unknown>>, path: string): void {
  const { tool_calls: calls, function_call: call, audio, role } = message;
  if (Array.isArray(calls) ? calls.length > 0 : calls != null) throw unsupported(`${path}.tool_calls`, 'tool calling');
  if (call != null) throw unsupported(`${path}.function_call`, 'function calling');
  if (audio != null) throw unsupported(`${path}.audio`, 'audio');
  if (role === 'tool' || role === 'function') throw unsupported(`${path}.role`, 'tool calling');
}
