import type { Conversation } from './types.ts';

/**
 * The conversations of this tab after another has written its own: what it began is added, what it removed goes, what it changed is as it
 * has it. Its copy of what only this tab has changed is older, and an answer on its way stays.
 */
export function mergeTabs(
  own: readonly Conversation[],
  { before, after }: { before: readonly Conversation[]; after: readonly Conversation[] },
): Conversation[] {
  const written = new Map(after.map((one) => [one.id, one]));
  const earlier = new Map(before.map((one) => [one.id, one]));
  const isBusy = ({ messages }: Conversation): boolean => messages.some(({ state }) => state === 'streaming');
  const isChanged = ({ id }: Conversation): boolean =>
    JSON.stringify(written.get(id)) !== JSON.stringify(earlier.get(id));
  const stays = own
    .filter((one) => written.has(one.id) || !earlier.has(one.id) || isBusy(one))
    .map((one) => (written.has(one.id) && isChanged(one) && !isBusy(one) ? written.get(one.id)! : one));
  const known = new Set(own.map(({ id }) => id));
  const added = after.filter((one) => !known.has(one.id) && isChanged(one));
  return [...stays, ...added].sort((a, b) => b.createdMs - a.createdMs);
}
