import { choiceField, type Field, invalid, readFields, requiredField } from '../fields.ts';
import type { ChatMessage, MessageImage } from '../../../runtime/lower-layers.ts';
import { type Block, BLOCKS_SCHEMA, readBlocks } from './content-blocks.ts';

type Role = 'user' | 'assistant' | 'system';

const FIELDS = {
  role: requiredField(choiceField(['user', 'assistant', 'system'])),
  content: requiredField({ schema: BLOCKS_SCHEMA, read: readBlocks }),
};

/** Users write blocks as paragraphs; answers can be split into blocks inside a word. */
const SEPARATORS: Readonly<Record<Role, string>> = { user: '\n\n', system: '\n\n', assistant: '' };

/** A message: its tool results as turns, then its own turn. */
export const messageField: Field<readonly ChatMessage[]> = {
  schema: {
    type: 'object',
    properties: { role: FIELDS.role.schema, content: BLOCKS_SCHEMA },
    required: ['role', 'content'],
  },
  read(value, path) {
    const { role, content } = readFields(value, FIELDS, { path });
    return toTurns(role, content, `${path}.content`);
  },
};

function toTurns(role: Role, blocks: readonly Block[], path: string): ChatMessage[] {
  const turns: ChatMessage[] = [];
  const texts: string[] = [];
  const thoughts: string[] = [];
  const images: MessageImage[] = [];
  const calls: Extract<Block, { type: 'tool_use' }>['call'][] = [];
  for (const [index, block] of blocks.entries()) {
    const where = `${path}[${index}]`;
    if (block.type === 'text') texts.push(block.text);
    else if (block.type === 'image') {
      if (role !== 'user') throw invalid(where, "a block of this role; only 'user' has images", block.type);
      images.push({ offset: joinedLength(texts, SEPARATORS[role]), data: block.data });
    } else if (block.type === 'thinking') {
      if (role !== 'assistant') throw invalid(where, "a block of this role; only 'assistant' thinks", block.type);
      if (block.text !== '') thoughts.push(block.text);
    } else if (block.type === 'tool_use') {
      if (role !== 'assistant') throw invalid(where, "a block of this role; only 'assistant' uses tools", block.type);
      calls.push(block.call);
    } else {
      if (role !== 'user') throw invalid(where, "a block of this role; only 'user' has results", block.type);
      // Text between a call and its result would look like the result.
      if (texts.length > 0) throw invalid(where, 'before the text of its message', block.type);
      turns.push({ role: 'tool', content: block.text, toolCallId: block.id });
    }
  }
  const content = texts.join(SEPARATORS[role]);
  const thought = thoughts.length === 0 ? {} : { reasoning: thoughts.join('\n\n') };
  if (calls.length > 0) turns.push({ role, content, ...thought, toolCalls: calls });
  else if (texts.length > 0 || images.length > 0 || turns.length === 0) {
    turns.push({ role, content, ...(images.length === 0 ? {} : { images }), ...thought });
  }
  return turns;
}

/** Where a text after these would start. */
const joinedLength = (texts: readonly string[], separator: string): number =>
  texts.reduce((sum, text) => sum + text.length + separator.length, 0);

/** Joins consecutive turns of one role, as Anthropic does; many templates require it. */
export function joinTurns(turns: readonly ChatMessage[]): ChatMessage[] {
  const joined: ChatMessage[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last === undefined || last.role !== turn.role || turn.role === 'tool' || last.toolCalls !== undefined) {
      joined.push(turn);
      continue;
    }
    const separator = SEPARATORS[turn.role as Role];
    const reasoning = [last.reasoning, turn.reasoning].filter((text) => text !== undefined).join('\n\n');
    const start = last.content.length + separator.length;
    const later = (turn.images ?? []).map(({ offset, data }) => ({ offset: offset + start, data }));
    const images = [...(last.images ?? []), ...later];
    joined[joined.length - 1] = {
      ...turn,
      content: `${last.content}${separator}${turn.content}`,
      ...(images.length === 0 ? {} : { images }),
      ...(reasoning === '' ? {} : { reasoning }),
    };
  }
  return joined;
}
