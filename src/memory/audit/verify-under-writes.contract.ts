import { createRandom } from '../../core/random.ts';
import { type TestServices, wrapStore } from '../test-store.contract.ts';
import type { MemoryStore } from '../types.ts';
import type { AuditArchive } from './archive.ts';
import { auditInput, createManualSchedule, TENANT } from './harness.contract.ts';
import { openAuditLog, type AuditLog } from './index.ts';
import type { AuditReport } from './verify.ts';

const DAY_MS = 86_400_000;

export interface BusyLogOptions {
  readonly store: MemoryStore;
  readonly services: TestServices;
  readonly archive: AuditArchive;
  readonly seed: number;
  /** Nothing is archived, trimmed or erased: damage stays where it is. Default false. */
  readonly hasOnlyWrites?: boolean;
}

export interface BusyLog {
  /** Writes, archives, trims and erases by itself; for damage in a quiet moment. */
  readonly log: AuditLog;
  /** One verification; before each of its calls others may write, archive, trim or erase. */
  verify(): Promise<AuditReport>;
  /** Counts of what came between so far. */
  readonly between: Readonly<Record<'writes' | 'retentions' | 'erasures', number>>;
}

/** A log in use: its verifications meet others at every call, by a schedule that the seed repeats. */
export async function openBusyLog({
  store,
  services,
  archive,
  seed,
  hasOnlyWrites = false,
}: BusyLogOptions): Promise<BusyLog> {
  const random = createRandom(seed);
  const { schedule } = createManualSchedule();
  const parts = { services, schedule, retention: { maxBytes: 20_000, archiveMaxAgeMs: 10 * DAY_MS } };
  const log = await openAuditLog({ ...parts, store, archive, log: { numSimilar: 0 } });
  const between = { writes: 0, retentions: 0, erasures: 0 };
  let number = 0;
  const write = async (count: number): Promise<void> => {
    between.writes++;
    for (let i = 0; i < count; i++) {
      services.timeMs += 60_000;
      // A third of the entries belongs to the user who is erased next.
      const userId = random.next() < 0.3 ? `user ${between.erasures}` : null;
      log.enqueue(TENANT, auditInput({ query: `query ${++number}`, userId }));
    }
    await log.flush();
  };
  const meet = async (): Promise<void> => {
    const chance = random.next();
    if (chance < 0.3) await write(1 + Math.floor(random.next() * 3));
    else if (hasOnlyWrites) return;
    else if (chance < 0.33) {
      between.retentions++;
      services.timeMs += random.next() * 8 * DAY_MS;
      await log.retain(TENANT);
    } else if (chance < 0.36) {
      await log.erase(TENANT, { userId: `user ${between.erasures++}`, requestIds: new Set() });
    }
  };
  const met = wrapStore(store);
  const readArchive = async (name: string): Promise<Uint8Array | null> => {
    await meet();
    return archive.read(name);
  };
  const verifier = await openAuditLog({
    ...parts,
    store: met,
    archive: { ...archive, read: readArchive },
    // The other log is alive.
    log: { leaseMs: 60_000 },
  });
  await write(10);
  return {
    log,
    between,
    async verify() {
      met.onCall = meet;
      try {
        return await verifier.verify(TENANT);
      } finally {
        met.onCall = () => {};
      }
    },
  };
}
