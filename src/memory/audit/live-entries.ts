import { linkFromRecord, type AuditLink } from '../schemas/audit.ts';
import { AUDIT_KIND, type JsonValue, type MemoryRecord, type MemoryStore } from '../types.ts';

/** Entries read at once. */
const WINDOW = 500;

export interface LiveEntry {
  readonly record: MemoryRecord;
  /** Null: damaged. */
  readonly link: AuditLink | null;
  readonly body: JsonValue;
}

function toLive(record: MemoryRecord): LiveEntry {
  try {
    return { record, ...linkFromRecord(record) };
  } catch {
    return { record, link: null, body: null };
  }
}

/** The stored entries with sequences `from` to `to`, in windows sorted by sequence: two logs may mint ids out of order. */
export async function* readLive(
  store: MemoryStore,
  tenant: string,
  { from, to }: { readonly from: number; readonly to: number },
): AsyncGenerator<readonly LiveEntry[]> {
  let createdFromMs = 0;
  for (let start = from; start <= to; start += WINDOW) {
    const end = Math.min(to, start + WINDOW - 1);
    const filter = {
      // Times only grow along a chain.
      createdFromMs,
      fields: [
        { field: 'sequence', is: '>=', value: start },
        { field: 'sequence', is: '<=', value: end },
      ],
    } as const;
    const { records } = await store.find(tenant, { kinds: [AUDIT_KIND], filter, order: 'oldest', limit: 2 * WINDOW });
    const entries = records
      .map(toLive)
      .sort((a, b) => Number(a.record.fields['sequence']) - Number(b.record.fields['sequence']));
    yield entries;
    createdFromMs = entries.at(-1)?.record.createdMs ?? createdFromMs;
  }
}
