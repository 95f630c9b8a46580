import type { ChatMessage, ToolCall } from '../../../runtime/lower-layers.ts';
import { type Content, imageUrlField, joinContent } from '../image-parts.ts';
import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  invalid,
  isObject,
  listField,
  objectField,
  readFields,
  required,
  requiredField,
  schemaOf,
  stringField,
} from '../fields.ts';
import { unsupported, unsupportedField } from '../unsupported.ts';

const MAX_TEXT = 2 ** 28;
const MAX_PARTS = 4096;
const MAX_CALLS = 128;

/** Text, or a list of parts with text and images. */
const contentField: Field<Content> = {
  schema: {
    oneOf: [
      { type: 'string' },
      {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            type: { type: 'string', enum: ['text', 'image_url'] },
            text: { type: 'string' },
            image_url: { type: 'object', properties: { url: { type: 'string' } } },
          },
          required: ['type'],
        },
      },
    ],
  },
  read(value, path) {
    if (typeof value === 'string') return { text: value, images: [] };
    if (!Array.isArray(value) || value.length > MAX_PARTS) {
      throw invalid(path, `a string or a list of at most ${MAX_PARTS} parts`, value);
    }
    return joinContent(value.map((part, index) => readPart(part, `${path}[${index}]`)));
  },
};

function readPart(part: unknown, path: string): string | Uint8Array {
  if (!isObject(part)) throw invalid(path, 'an object', part);
  if (part['type'] === 'image_url') return readFields(part, IMAGE_PART, { path }).image_url;
  if (part['type'] !== 'text') {
    const type = typeof part['type'] === 'string' ? JSON.stringify(part['type'].slice(0, 40)) : 'without a type';
    throw unsupported(`${path}.type`, `a content part ${type}`);
  }
  return readFields(part, PART, { path }).text;
}

const PART = {
  type: stringField(40),
  text: requiredField(stringField(MAX_TEXT)),
  ...ignoredFields('prompt_cache_breakpoint'),
};
const IMAGE_PART = {
  type: stringField(40),
  image_url: requiredField(imageUrlField),
  ...ignoredFields('prompt_cache_breakpoint'),
};
const FUNCTION = { name: requiredField(stringField(256, 1)), arguments: requiredField(stringField(MAX_TEXT)) };
const CALL = {
  id: requiredField(stringField(256, 1)),
  type: choiceField(['function']),
  function: requiredField(objectField),
  ...ignoredFields('index'),
};

/** A call that the assistant made in an earlier turn. */
const callField: Field<ToolCall> = {
  schema: {
    type: 'object',
    properties: { id: CALL.id.schema, type: CALL.type.schema, function: { type: 'object' } },
    required: ['id', 'type', 'function'],
  },
  read(value, path) {
    const { id, function: call } = readFields(value, CALL, { path });
    return { id, ...readFields(call, FUNCTION, { path: `${path}.function` }) };
  },
};

/** A call of the older form, which has no id. */
const olderCallField: Field<ToolCall> = {
  schema: schemaOf(FUNCTION),
  read: (value, path) => ({ id: '', ...readFields(value, FUNCTION, { path }) }),
};

const MESSAGE_FIELDS = {
  role: requiredField(choiceField(['system', 'developer', 'user', 'assistant', 'tool', 'function'])),
  content: contentField,
  name: stringField(256),
  tool_calls: listField(callField, MAX_CALLS),
  tool_call_id: stringField(256, 1),
  reasoning_content: stringField(MAX_TEXT),
  /** Mistral's and DeepSeek's mark of a last message that the answer continues. */
  prefix: booleanField,
  // Clients send back whole answers, in which the unsupported fields are null.
  audio: unsupportedField('audio'),
  function_call: olderCallField,
  ...ignoredFields('refusal', 'annotations'),
};

export const messageField: Field<ChatMessage> = {
  schema: schemaOf(MESSAGE_FIELDS),
  read(value, path) {
    const fields = readFields(value, MESSAGE_FIELDS, { path });
    const { name, tool_call_id: callId, reasoning_content: reasoning, function_call: olderCall } = fields;
    const isOlderResult = fields.role === 'function';
    const role = fields.role === 'function' ? 'tool' : fields.role;
    const calls = fields.tool_calls ?? (olderCall === null ? null : [olderCall]);
    const only = (owner: ChatMessage['role'], field: string): void => {
      if (role !== owner)
        throw invalid(`${path}.${field}`, `left out except in messages with the role '${owner}'`, role);
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
    if (isOlderResult) required(name, `${path}.name`);
    if (role === 'tool') message.toolCallId = isOlderResult ? '' : required(callId, `${path}.tool_call_id`);
    // Only a turn with calls may omit the content.
    const content = message.toolCalls === undefined ? required(fields.content, `${path}.content`) : fields.content;
    message.content = content?.text ?? '';
    if (content !== null && content.images.length > 0) {
      only('user', 'content');
      message.images = content.images;
    }
    return message;
  },
};

/** Whether the answer continues this message. */
export const isPrefix = (message: unknown): boolean => isObject(message) && message['prefix'] === true;

/** The messages of a conversation. Calls of the older form get ids, which their results refer to. */
export function messagesField(maxMessages: number): Field<readonly ChatMessage[]> {
  const list = listField(messageField, maxMessages, 1);
  return {
    schema: list.schema,
    read(value, path) {
      const messages = list.read(value, path);
      let numCalls = 0;
      for (const message of messages) {
        if (message.toolCalls?.[0]?.id === '') {
          numCalls++;
          message.toolCalls = message.toolCalls.map((call) => ({ ...call, id: `function_${numCalls}` }));
        }
        if (message.toolCallId === '') message.toolCallId = `function_${numCalls}`;
      }
      return messages;
    },
  };
}
