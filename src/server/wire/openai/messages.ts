import type { ChatMessage, ToolCall } from '../../../runtime/lower-layers.ts';
import {
  choiceField,
  type Field,
  invalid,
  isObject,
  listField,
  objectField,
  readFields,
  required,
  requiredField,
  stringField,
} from '../fields.ts';
import { unsupported } from '../unsupported.ts';

const MAX_TEXT = 2 ** 28;
const MAX_PARTS = 4096;
const MAX_CALLS = 128;

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
  const fields = { type: stringField(40), text: requiredField(stringField(MAX_TEXT)) };
  return readFields(part, fields, { path, ignored: ['prompt_cache_breakpoint'] }).text;
}

const FUNCTION = { name: requiredField(stringField(256, 1)), arguments: requiredField(stringField(MAX_TEXT)) };
const CALL = {
  id: requiredField(stringField(256, 1)),
  type: choiceField(['function']),
  function: requiredField(objectField),
};

/** A call that the assistant made in an earlier turn. */
const callField: Field<ToolCall> = {
  schema: {
    type: 'object',
    properties: { id: CALL.id.schema, type: CALL.type.schema, function: { type: 'object' } },
    required: ['id', 'type', 'function'],
  },
  read(value, path) {
    const { id, function: call } = readFields(value, CALL, { path, ignored: ['index'] });
    return { id, ...readFields(call, FUNCTION, { path: `${path}.function` }) };
  },
};

const MESSAGE_FIELDS = {
  role: requiredField(choiceField(['system', 'developer', 'user', 'assistant', 'tool'])),
  content: contentField,
  name: stringField(256),
  tool_calls: listField(callField, MAX_CALLS),
  tool_call_id: stringField(256, 1),
  reasoning_content: stringField(MAX_TEXT),
};

/** A message of a conversation. */
export const messageField: Field<ChatMessage> = {
  schema: {
    type: 'object',
    properties: Object.fromEntries(Object.entries(MESSAGE_FIELDS).map(([name, { schema }]) => [name, schema])),
    required: ['role'],
  },
  read(value, path) {
    if (isObject(value)) refuseParts(value, path);
    const given = readFields(value, MESSAGE_FIELDS, {
      path,
      ignored: ['refusal', 'annotations', 'audio', 'function_call'],
    });
    const { role, name, tool_calls: calls, tool_call_id: callId, reasoning_content: reasoning } = given;
    const only = (owner: ChatMessage['role'], field: string): void => {
      if (role !== owner) throw invalid(`${path}.${field}`, `left out but in messages of the role '${owner}'`, role);
    };
    const message: ChatMessage = { role, content: '' };
    if (name !== null) message.name = name;
    if (calls !== null && calls.length > 0) {
      only('assistant', 'tool_calls');
      message.toolCalls = calls;
    }
    if (reasoning !== null && reasoning !== '') {
      only('assistant', 'reasoning_content');
      message.reasoning = reasoning;
    }
    if (callId !== null) only('tool', 'tool_call_id');
    if (role === 'tool') message.toolCallId = required(callId, `${path}.tool_call_id`);
    // A turn that only calls says nothing; every other turn says something, if only an empty text.
    message.content =
      message.toolCalls === undefined ? required(given.content, `${path}.content`) : (given.content ?? '');
    return message;
  },
};

/** What clients send back of answers is often there and null; only what is really there is refused. */
function refuseParts({ function_call: call, audio, role }: Readonly<Record<string, unknown>>, path: string): void {
  if (call != null) throw unsupported(`${path}.function_call`, "'function_call', which became 'tool_calls',");
  if (audio != null) throw unsupported(`${path}.audio`, 'audio');
  if (role === 'function') throw unsupported(`${path}.role`, "the role 'function', which became 'tool',");
}
