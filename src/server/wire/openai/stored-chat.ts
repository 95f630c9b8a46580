import type { ChatMessage } from '../../../runtime/lower-layers.ts';
import type { StoredEntry, StoredObject } from '../../stored/types.ts';
import { stringField } from '../fields.ts';
import { readOption } from '../page-query.ts';
import { PAGE_QUERY } from './list-page.ts';
import { writeToolCalls } from './chat-response.ts';

export const writeStoredChat = ({ id, content, metadata }: StoredObject<'chat.completion'>) => ({
  ...content.body,
  id,
  metadata,
});

/** The messages of the request. */
export function writeStoredMessages({
  id,
  content,
}: StoredObject<'chat.completion'>): readonly { readonly id: string }[] {
  return content.messages.map((message, index) => writeStoredMessage(message, `${id}-${index}`));
}

function writeStoredMessage({ role, content, name, toolCalls, toolCallId }: ChatMessage, id: string) {
  return {
    id,
    role,
    content,
    refusal: null,
    name: name ?? null,
    content_parts: null,
    ...(toolCalls === undefined ? {} : { tool_calls: writeToolCalls(toolCalls) }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  };
}

/** The chat completions that the query's `model` and `metadata[key]` select, the oldest first. */
export function selectChats(entries: readonly StoredEntry[], query: URLSearchParams): readonly StoredEntry[] {
  const model = readOption(query, 'model', stringField(512), null);
  const pairs = [...query].flatMap(([name, value]) => {
    const key = /^metadata\[(.{1,64})\]$/s.exec(name)?.[1];
    return key === undefined ? [] : [[key, value] as const];
  });
  const isSelected = (entry: StoredEntry): boolean =>
    (model === null || entry.model === model) &&
    pairs.every(([key, value]) => Object.hasOwn(entry.metadata, key) && entry.metadata[key] === value);
  return entries.filter(isSelected).sort((a, b) => a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1));
}

export const CHAT_LIST_QUERY = {
  ...PAGE_QUERY,
  model: { schema: { type: 'string' } },
  'metadata[key]': { schema: { type: 'string', description: 'only completions with this value of `key`' } },
} as const;
