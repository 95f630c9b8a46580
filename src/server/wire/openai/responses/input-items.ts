import {
  choiceField,
  type Field,
  invalid,
  isObject,
  objectField,
  readFields,
  required,
  stringField,
} from '../../fields.ts';
import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import { unsupported } from '../../unsupported.ts';

const MAX_TEXT = 2 ** 28;
const MAX_PARTS = 4096;
const MAX_NAME = 256;
const TEXT_PARTS = new Set(['input_text', 'output_text', 'text']);

/** Text, or a list of parts that are all text. */
const contentField: Field<string> = {
  schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' }, maxItems: MAX_PARTS }] },
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
  const type = part['type'];
  if (typeof type !== 'string') throw invalid(`${path}.type`, 'a string', type);
  if (!TEXT_PARTS.has(type)) throw unsupported(`${path}.type`, `a content part ${JSON.stringify(type.slice(0, 40))}`);
  const { text } = readFields<{ type: string; text: string }>(
    part,
    { type: stringField(MAX_NAME), text: stringField(MAX_TEXT) },
    { path, ignored: ['annotations', 'logprobs', 'prompt_cache_breakpoint'] },
  );
  return required(text, `${path}.text`);
}

const MESSAGE = {
  type: stringField(MAX_NAME),
  role: choiceField(['user', 'assistant', 'system', 'developer']),
  content: contentField,
} as const;
const CALL = {
  type: stringField(MAX_NAME),
  call_id: stringField(MAX_NAME, 1),
  name: stringField(MAX_NAME, 1),
  arguments: stringField(MAX_TEXT),
} as const;
const RESULT = { type: stringField(MAX_NAME), call_id: stringField(MAX_NAME, 1), output: contentField } as const;
const THOUGHTS: Field<string> = {
  schema: { type: 'array', items: { type: 'object' }, maxItems: MAX_PARTS },
  read(value, path) {
    if (!Array.isArray(value) || value.length > MAX_PARTS) throw invalid(path, `a list of at most ${MAX_PARTS}`, value);
    return value
      .map((part: unknown, index) => {
        const where = `${path}[${index}]`;
        const { text } = readFields<{ type: string; text: string }>(
          part,
          { type: stringField(MAX_NAME), text: stringField(MAX_TEXT) },
          { path: where },
        );
        return required(text, `${where}.text`);
      })
      .join('\n\n');
  },
};
const REASONING = { type: stringField(MAX_NAME), summary: THOUGHTS, content: THOUGHTS } as const;
/** Of answers that are sent back as they came. */
const IGNORED = ['id', 'status', 'phase', 'caller', 'namespace'] as const;

/** How each type of item is read: all there are. */
const READERS: Readonly<Record<string, (value: object, path: string) => ChatMessage>> = {
  message(value, path) {
    const { role, content } = readFields<{ type: string; role: ChatMessage['role']; content: string }>(value, MESSAGE, {
      path,
      ignored: IGNORED,
    });
    return { role: required(role, `${path}.role`), content: required(content, `${path}.content`) };
  },
  function_call(value, path) {
    const given = readFields<{ type: string; call_id: string; name: string; arguments: string }>(value, CALL, {
      path,
      ignored: IGNORED,
    });
    const call = {
      id: required(given.call_id, `${path}.call_id`),
      name: required(given.name, `${path}.name`),
      arguments: required(given.arguments, `${path}.arguments`),
    };
    return { role: 'assistant', content: '', toolCalls: [call] };
  },
  reasoning(value, path) {
    const given = readFields<{ type: string; summary: string; content: string }>(value, REASONING, {
      path,
      ignored: [...IGNORED, 'encrypted_content'],
    });
    return { role: 'assistant', content: '', reasoning: given.content ?? given.summary ?? '' };
  },
  function_call_output(value, path) {
    const given = readFields<{ type: string; call_id: string; output: string }>(value, RESULT, {
      path,
      ignored: IGNORED,
    });
    const content = required(given.output, `${path}.output`);
    return { role: 'tool', content, toolCallId: required(given.call_id, `${path}.call_id`) };
  },
};

function readItem(value: unknown, path: string): ChatMessage {
  const item = objectField.read(value, path);
  const type = item['type'] ?? 'message';
  if (typeof type !== 'string') throw invalid(`${path}.type`, 'a string', type);
  if (Object.hasOwn(READERS, type)) return READERS[type]!(item, path);
  throw unsupported(`${path}.type`, `an input item ${JSON.stringify(type.slice(0, 40))}`);
}

/** Thoughts, text and calls of one turn come as items of their own, behind each other. */
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
  // Thoughts that led to nothing are no turn.
  return joined.filter((turn) => !isThought(turn));
}

const isThought = ({ content, reasoning, toolCalls }: ChatMessage): boolean =>
  reasoning !== undefined && content === '' && toolCalls === undefined;

/** `input`: what a user says, or items of a conversation. */
export function inputField(maxItems: number): Field<readonly ChatMessage[]> {
  return {
    schema: { oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' }, minItems: 1, maxItems }] },
    read(value, path) {
      if (typeof value === 'string') return [{ role: 'user', content: value }];
      if (!Array.isArray(value) || value.length < 1 || value.length > maxItems) {
        throw invalid(path, `a string or a list of 1 to ${maxItems} items`, value);
      }
      return joinItems(value.map((item, index) => readItem(item, `${path}[${index}]`)));
    },
  };
}
