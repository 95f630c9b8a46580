import { linkFromRecord, type AuditLink } from '../schemas/audit.ts';
import { AUDIT_KIND, type JsonValue, type MemoryRecord, type MemoryStore } from '../types.ts';

/** Entries that are read at once. */
const WINDOW = 500;

export interface LiveEntry {
  readonly record: MemoryRecord;
  /** Null: the record has no link that can be read. */
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

export interface LiveRange {
  /** The first sequence that is wanted, and the last. */
  readonly from: number;
  readonly to: number;
}

/** The entries of a chain in the store, window by window, each in the order of the chain: two logs may mint ids out of order. */
export async function* readLive(
  store: MemoryStore,
  tenant: string,
  { from, to }: LiveRange,
): AsyncGenerator<readonly LiveEntry[]> {
  let createdFromMs = 0;
  for (let start = from; start <= to; start += WINDOW) {
    const end = Math.min(to, start + WINDOW - 1);
    const filter = {
      // Times only grow along a chain: what came before need not be looked at.
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
