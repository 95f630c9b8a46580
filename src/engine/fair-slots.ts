import type { Sequence } from './sequence.ts';

/** Tokens a sequence may go on for before it gives up its place to another tenant once more: or they would take turns at every token. */
export const SLICE_TOKENS = 32;

/** How many sequences of each tenant run. */
export function countTenants(running: readonly Sequence[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { request } of running) counts.set(request.tenant, (counts.get(request.tenant) ?? 0) + 1);
  return counts;
}

/** Whether some other tenant runs at least two more than this one's: then one of them can move over without the two changing sides. */
export function hasFewSlots(counts: ReadonlyMap<string, number>, { request, hasNoRoom }: Sequence): boolean {
  if (hasNoRoom) return false;
  const own = counts.get(request.tenant) ?? 0;
  for (const count of counts.values()) if (count - own >= 2) return true;
  return false;
}

/** Who gives up its place: the lowest in rank of the tenant that runs most, never of higher priority; -1: nobody. */
export function findMostSlots(running: readonly Sequence[], waiting: Sequence): number {
  const counts = countTenants(running);
  let most = (counts.get(waiting.request.tenant) ?? 0) + 1;
  let place = -1;
  for (let i = running.length - 1; i >= 0; i--) {
    const { request, pooler, sliceEnd, tokenIds } = running[i]!;
    const count = counts.get(request.tenant)!;
    // What generates nothing ends soon, and would begin anew.
    if (count <= most || pooler !== null || tokenIds.length < sliceEnd) continue;
    // By what they are: what a long queue of one tenant has earned by waiting is not held against another.
    if (request.priority > waiting.request.priority) continue;
    most = count;
    place = i;
  }
  return place;
}
