import {
  booleanField,
  choiceField,
  type Field,
  ignoredFields,
  invalid,
  isObject,
  objectField,
  readFields,
  requiredField,
  stringField,
} from '../../fields.ts';
import type { ChatMessage, ToolCall } from '../../../../runtime/lower-layers.ts';
import { type Content, joinContent, urlField } from '../../image-parts.ts';
import { unsupported } from '../../unsupported.ts';

const MAX_TEXT = 2 ** 28;
const MAX_PARTS = 4096;
const MAX_NAME = 256;
const TEXT_PARTS = new Set(['input_text', 'output_text', 'text']);

/** Text, or a list of parts with text and images. */
const contentField: Field<Content> = {
  schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' }, maxItems: MAX_PARTS }] },
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
  const type = part['type'];
  if (typeof type !== 'string') throw invalid(`${path}.type`, 'a string', type);
  if (type === 'input_image') return readFields(part, IMAGE, { path }).image_url;
  if (!TEXT_PARTS.has(type)) throw unsupported(`${path}.type`, `a content part ${JSON.stringify(type.slice(0, 40))}`);
  return readFields(part, PART, { path }).text;
}

const type = stringField(MAX_NAME);
const nameField = requiredField(stringField(MAX_NAME, 1));
const TEXT = { type, text: requiredField(stringField(MAX_TEXT)) };
const PART = { ...TEXT, ...ignoredFields('annotations', 'logprobs', 'prompt_cache_breakpoint') };
const IMAGE = { type, image_url: requiredField(urlField), ...ignoredFields('detail', 'prompt_cache_breakpoint') };
/** Parts of answers that clients send back. */
const IGNORED = ignoredFields('id', 'status', 'phase', 'caller', 'namespace');
const MESSAGE = {
  type,
  role: requiredField(choiceField(['user', 'assistant', 'system', 'developer'])),
  content: requiredField(contentField),
  ...IGNORED,
};
const CALL = { type, call_id: nameField, name: nameField, arguments: requiredField(stringField(MAX_TEXT)), ...IGNORED };
const RESULT = { type, call_id: nameField, output: requiredField(contentField), ...IGNORED };
const THOUGHTS: Field<string> = {
  schema: { type: 'array', items: { type: 'object' }, maxItems: MAX_PARTS },
  read(value, path) {
    if (!Array.isArray(value) || value.length > MAX_PARTS) throw invalid(path, `a list of at most ${MAX_PARTS}`, value);
    return value.map((part: unknown, index) => readFields(part, TEXT, { path: `${path}[${index}]` }).text).join('\n\n');
  },
};
const REASONING = {
  type,
  summary: THOUGHTS,
  content: THOUGHTS,
  ...IGNORED,
  ...ignoredFields('encrypted_content'),
};

const MCP_CALL = {
  type,
  id: nameField,
  server_label: nameField,
  name: nameField,
  arguments: requiredField(stringField(MAX_TEXT)),
  output: stringField(MAX_TEXT),
  error: { schema: {}, read: (value: unknown): unknown => value },
  approval_request_id: stringField(MAX_NAME),
  ...ignoredFields('status'),
};
const APPROVAL_REQUEST = {
  type,
  id: nameField,
  server_label: nameField,
  name: nameField,
  arguments: requiredField(stringField(MAX_TEXT)),
};
const APPROVAL_RESPONSE = {
  type,
  approval_request_id: nameField,
  approve: requiredField(booleanField),
  reason: stringField(MAX_TEXT),
  ...ignoredFields('id', 'request_id'),
};

/** The types of items of MCP: none, one or two turns. */
const MCP_READERS: Readonly<Record<string, (value: object, path: string) => readonly ChatMessage[]>> = {
  /** The list is made anew for each request. */
  mcp_list_tools: () => [],
  mcp_call(value, path) {
    const { id, name, arguments: args, output, error } = readFields(value, MCP_CALL, { path });
    const content = output ?? (error === null ? '' : `Error: ${JSON.stringify(error)}`);
    return [callTurn({ id, name, arguments: args }), { role: 'tool', content, toolCallId: id }];
  },
  mcp_approval_request(value, path) {
    const { id, name, arguments: args } = readFields(value, APPROVAL_REQUEST, { path });
    return [callTurn({ id, name, arguments: args })];
  },
  mcp_approval_response(value, path) {
    readFields(value, APPROVAL_RESPONSE, { path });
    return [];
  },
};

const callTurn = (call: ToolCall): ChatMessage => ({ role: 'assistant', content: '', toolCalls: [call] });

/** The supported types of items. */
const READERS: Readonly<Record<string, (value: object, path: string) => ChatMessage>> = {
  message(value, path) {
    const { role, content } = readFields(value, MESSAGE, { path });
    if (content.images.length === 0) return { role, content: content.text };
    if (role !== 'user')
      throw invalid(`${path}.content`, "without images except in messages with the role 'user'", role);
    return { role, content: content.text, images: content.images };
  },
  function_call(value, path) {
    const { call_id: id, name, arguments: args } = readFields(value, CALL, { path });
    return { role: 'assistant', content: '', toolCalls: [{ id, name, arguments: args }] };
  },
  reasoning(value, path) {
    const { content, summary } = readFields(value, REASONING, { path });
    return { role: 'assistant', content: '', reasoning: content ?? summary ?? '' };
  },
  function_call_output(value, path) {
    const { call_id: toolCallId, output } = readFields(value, RESULT, { path });
    if (output.images.length > 0) throw unsupported(`${path}.output`, 'an image as the result of a tool');
    return { role: 'tool', content: output.text, toolCallId };
  },
};

/** An item, which is a turn or a part of one. */
export function readItem(value: unknown, path: string): ChatMessage {
  const item = objectField.read(value, path);
  const type = item['type'] ?? 'message';
  if (typeof type !== 'string') throw invalid(`${path}.type`, 'a string', type);
  if (Object.hasOwn(READERS, type)) return READERS[type]!(item, path);
  throw unsupported(`${path}.type`, `an input item ${JSON.stringify(type.slice(0, 40))}`);
}

/** The turns of a list of items. A request for approval that has a call is part of that call. */
export function readItemList(items: readonly unknown[], path: string): ChatMessage[] {
  const called = new Set(items.map((item) => (isObject(item) && item['type'] === 'mcp_call' ? item['approval_request_id'] : null))); // prettier-ignore
  const turns = items.flatMap((item, index): readonly ChatMessage[] => {
    const at = `${path}[${index}]`;
    const itemType = isObject(item) ? item['type'] : null;
    if (typeof itemType !== 'string' || !Object.hasOwn(MCP_READERS, itemType)) return [readItem(item, at)];
    if (itemType === 'mcp_approval_request' && called.has((item as { id?: unknown }).id)) return [];
    return MCP_READERS[itemType]!(item as object, at);
  });
  return joinItems(turns);
}

/** Joins the reasoning, text and calls of a turn, which are separate items. */
function joinItems(turns: readonly ChatMessage[]): ChatMessage[] {
  const joined: ChatMessage[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last?.role === 'assistant' && turn.role === 'assistant' && (isThought(last) || turn.toolCalls !== undefined)) {
      const toolCalls = [...(last.toolCalls ?? []), ...(turn.toolCalls ?? [])];
      joined[joined.length - 1] = { ...turn, ...last, content: last.content + turn.content };
      if (toolCalls.length > 0) joined[joined.length - 1]!.toolCalls = toolCalls;
    } else joined.push(turn);
  }
  // Reasoning without an answer is dropped.
  return joined.filter((turn) => !isThought(turn));
}

const isThought = ({ content, reasoning, toolCalls }: ChatMessage): boolean =>
  reasoning !== undefined && content === '' && toolCalls === undefined;

/** `input`: a user's text, or items of a conversation. */
export function inputField(maxItems: number): Field<readonly ChatMessage[]> {
  return {
    schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' }, minItems: 1, maxItems }] },
    read(value, path) {
      if (typeof value === 'string') return [{ role: 'user', content: value }];
      if (!Array.isArray(value) || value.length < 1 || value.length > maxItems) {
        throw invalid(path, `a string or a list of 1 to ${maxItems} items`, value);
      }
      return readItemList(value, path);
    },
  };
}
