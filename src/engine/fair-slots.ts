import type { Sequence } from './sequence.ts';

/** Tokens a sequence runs before another tenant may preempt it again; without a slice they would alternate at every token. */
export const SLICE_TOKENS = 32;

/** Running sequences per tenant. */
export function countTenants(running: readonly Sequence[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { request } of running) counts.set(request.tenant, (counts.get(request.tenant) ?? 0) + 1);
  return counts;
}

/** Whether another tenant runs at least two more sequences, so that moving one slot does not just swap the two. */
export function hasFewSlots(counts: ReadonlyMap<string, number>, { request }: Sequence): boolean {
  const count = counts.get(request.tenant) ?? 0;
  for (const otherCount of counts.values()) if (otherCount - count >= 2) return true;
  return false;
}

/** The victim's index: the lowest rank of the tenant with most running, never of higher priority; -1: none. */
export function findMostSlots(running: readonly Sequence[], waiting: Sequence): number {
  const counts = countTenants(running);
  let most = (counts.get(waiting.request.tenant) ?? 0) + 1;
  let place = -1;
  for (let i = running.length - 1; i >= 0; i--) {
    const { request, pooler, sliceEnd, tokenIds } = running[i]!;
    const count = counts.get(request.tenant)!;
    // An embedding ends soon and would restart from the beginning.
    if (count <= most || pooler !== null || tokenIds.length < sliceEnd) continue;
    // Base priorities only: age gained in one tenant's long queue does not count against another tenant.
    if (request.priority > waiting.request.priority) continue;
    most = count;
    place = i;
  }
  return place;
}
