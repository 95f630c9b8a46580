import type { Conversation } from './types.ts';

/**
 * Merges the conversations of this tab with a write by another tab, which changed the stored ones from `before` to `after`. Additions,
 * deletions and changes of the other tab are applied. Its unchanged copies are ignored, because this tab may have newer ones, and
 * conversations with a streaming answer stay as they are.
 */
export function mergeTabs(
  local: readonly Conversation[],
  { before, after }: { before: readonly Conversation[]; after: readonly Conversation[] },
): Conversation[] {
  const afterById = new Map(after.map((conversation) => [conversation.id, conversation]));
  const beforeById = new Map(before.map((conversation) => [conversation.id, conversation]));
  const isStreaming = ({ messages }: Conversation): boolean => messages.some(({ state }) => state === 'streaming');
  const isChanged = ({ id }: Conversation): boolean =>
    JSON.stringify(afterById.get(id)) !== JSON.stringify(beforeById.get(id));
  const remaining = local
    .filter(
      (conversation) => afterById.has(conversation.id) || !beforeById.has(conversation.id) || isStreaming(conversation),
    )
    .map((conversation) => {
      const incoming = afterById.get(conversation.id);
      return incoming !== undefined && isChanged(conversation) && !isStreaming(conversation) ? incoming : conversation;
    });
  const localIds = new Set(local.map(({ id }) => id));
  const additions = after.filter((conversation) => !localIds.has(conversation.id) && isChanged(conversation));
  return [...remaining, ...additions].sort((a, b) => b.createdMs - a.createdMs);
}
