import type { ToolCall } from '../../../runtime/lower-layers.ts';
import {
  booleanField,
  type Field,
  ignoredFields,
  invalid,
  isObject,
  type JsonSchema,
  objectField,
  readFields,
  requiredField,
  stringField,
} from '../fields.ts';
import { base64Field, urlField } from '../image-parts.ts';
import { unsupported } from '../unsupported.ts';
import { cacheControlField } from './cache-control.ts';
import { showValue } from '../../../core/show-value.ts';

/** A parsed block of a message. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly data: Uint8Array }
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'tool_use'; readonly call: ToolCall }
  | { readonly type: 'tool_result'; readonly id: string; readonly text: string };

const MAX_TEXT = 2 ** 28;
const MAX_BLOCKS = 4096;
const MAX_NAME = 256;
/** Fields of every block; the last two are in answers that clients send back. */
const COMMON = { cache_control: cacheControlField, ...ignoredFields('caller', 'toolset_name') };

const citationsField: Field<null> = {
  schema: { type: 'array', maxItems: 0 },
  read(value, path) {
    if (Array.isArray(value) && value.length === 0) return null;
    throw unsupported(path, 'citations');
  },
};

const TEXT = {
  type: stringField(MAX_NAME),
  text: requiredField(stringField(MAX_TEXT)),
  citations: citationsField,
  ...COMMON,
};
const TOOL_USE = {
  type: stringField(MAX_NAME),
  id: requiredField(stringField(MAX_NAME, 1)),
  name: requiredField(stringField(MAX_NAME, 1)),
  input: requiredField(objectField),
  ...COMMON,
};
const TOOL_RESULT = {
  type: stringField(MAX_NAME),
  tool_use_id: requiredField(stringField(MAX_NAME, 1)),
  content: {
    schema: {},
    read: (value: unknown, path: string): string =>
      readBlocks(value, path)
        .map((block) => (block.type === 'text' ? block.text : refuse(block.type, path)))
        .join('\n\n'),
  },
  // Without effect: chat templates do not support it.
  is_error: booleanField,
  ...COMMON,
};

const THINKING = {
  type: stringField(MAX_NAME),
  thinking: requiredField(stringField(MAX_TEXT)),
  ...COMMON,
  ...ignoredFields('signature'),
};

const IMAGE = { type: stringField(MAX_NAME), source: requiredField(objectField), ...COMMON };
const BASE64 = { type: stringField(MAX_NAME), media_type: stringField(MAX_NAME), data: requiredField(base64Field) };
const URL_SOURCE = { type: stringField(MAX_NAME), url: requiredField(urlField) };

/** The bytes of an image; its format is read from them, not from `media_type`. */
function readSource(source: object, path: string): Uint8Array {
  const type: unknown = (source as Record<string, unknown>)['type'];
  if (type === 'base64') return readFields(source, BASE64, { path }).data;
  if (type === 'url') return readFields(source, URL_SOURCE, { path }).url;
  throw unsupported(`${path}.type`, `an image from ${showValue(type)}`);
}

/** The supported types of blocks. */
const READERS: Readonly<Record<string, (value: object, path: string) => Block>> = {
  text(value, path) {
    const { text } = readFields(value, TEXT, { path });
    return { type: 'text', text };
  },
  image(value, path) {
    const { source } = readFields(value, IMAGE, { path });
    return { type: 'image', data: readSource(source, `${path}.source`) };
  },
  thinking(value, path) {
    const { thinking } = readFields(value, THINKING, { path });
    return { type: 'thinking', text: thinking };
  },
  // Encrypted by another server.
  redacted_thinking: () => ({ type: 'thinking', text: '' }),
  tool_use(value, path) {
    const { id, name, input } = readFields(value, TOOL_USE, { path });
    return { type: 'tool_use', call: { id, name, arguments: JSON.stringify(input) } };
  },
  tool_result(value, path) {
    const { tool_use_id: id, content } = readFields(value, TOOL_RESULT, { path });
    return { type: 'tool_result', id, text: content ?? '' };
  },
};

function refuse(type: string, path: string): never {
  throw unsupported(path, `a content block ${JSON.stringify(type.slice(0, 40))}`);
}

/** Text, or a list of blocks. */
export function readBlocks(value: unknown, path: string): readonly Block[] {
  if (typeof value === 'string') return [{ type: 'text', text: value }];
  if (!Array.isArray(value) || value.length > MAX_BLOCKS) {
    throw invalid(path, `a string or a list of at most ${MAX_BLOCKS} blocks`, value);
  }
  return value.map((block: unknown, index) => {
    const where = `${path}[${index}]`;
    if (!isObject(block)) throw invalid(where, 'an object', block);
    const { type } = block;
    if (typeof type !== 'string') throw invalid(`${where}.type`, 'a string', type);
    const read = Object.hasOwn(READERS, type) ? READERS[type]! : null;
    return read === null ? refuse(type, `${where}.type`) : read(block, where);
  });
}

export const BLOCKS_SCHEMA: JsonSchema = {
  oneOf: [
    { type: 'string' },
    {
      type: 'array',
      maxItems: MAX_BLOCKS,
      items: { type: 'object', properties: { type: { enum: Object.keys(READERS) } }, required: ['type'] },
    },
  ],
};

/**
 * The line with which Claude Code identifies a request for billing. It changes with every request, so at the start of the
 * prompt it would make the prefix cache useless; it tells the model nothing.
 */
const BILLING_LINE = /^x-anthropic-billing-header:[^\n]*(?:\n|$)/;

/** `system`: text, or blocks of text; null if nothing is left. A billing line at its very start is left out. */
export const systemField: Field<string | null> = {
  schema: BLOCKS_SCHEMA,
  read(value, path) {
    const texts = readBlocks(value, path).map((block, index) =>
      block.type === 'text' ? block.text : refuse(block.type, `${path}[${index}].type`),
    );
    const first = texts[0]?.replace(BILLING_LINE, '') ?? '';
    if (first === texts[0]) return texts.join('\n\n');
    const others = texts.slice(1);
    const kept = first === '' ? others : [first, ...others];
    return kept.length === 0 ? null : kept.join('\n\n');
  },
};
