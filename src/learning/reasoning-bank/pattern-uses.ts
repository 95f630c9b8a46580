import type { ReasoningBank } from './bank.ts';

/** Counts uses of patterns and writes the counts in batches: one write per request would cost more than the use. */
export interface PatternUses {
  note(tenant: string, ids: readonly string[]): void;
  forget(tenant: string): void;
  flush(): Promise<void>;
}

/** Counters of all tenants; beyond it uses are dropped until the next flush. */
const MAX_COUNTED = 10_000;

export function createPatternUses(bank: Pick<ReasoningBank, 'noteUses'>): PatternUses {
  const tenants = new Map<string, Map<string, number>>();
  let numCounted = 0;
  return {
    note(tenant, ids) {
      const counts = tenants.get(tenant) ?? new Map<string, number>();
      for (const id of ids) {
        if (!counts.has(id)) {
          if (numCounted >= MAX_COUNTED) continue;
          numCounted++;
        }
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      if (counts.size > 0) tenants.set(tenant, counts);
    },
    forget(tenant) {
      numCounted -= tenants.get(tenant)?.size ?? 0;
      tenants.delete(tenant);
    },
    async flush() {
      const counted = [...tenants];
      tenants.clear();
      numCounted = 0;
      for (const [tenant, counts] of counted) await bank.noteUses(tenant, counts);
    },
  };
}
