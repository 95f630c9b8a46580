// A process that writes until it is killed, and says over a pipe what was acknowledged; run by `crash.test.ts`.
import { writeSync } from 'node:fs';
import { auditInput } from '../../../memory/audit/harness.contract.ts';
import type { MemoryStore, PutRecord } from '../../../memory/types.ts';
import { openWholeMemory, seededVector, SPACE, type WholeMemory } from './crash-memory.contract.ts';
import type { SqliteDriver } from '../../../node/memory/open-memory-store.ts';

export const WRITER_TENANTS = ['alpha', 'beta'] as const;
/** Pair `k` of round `r` is deleted while pair `k + DELETE_AFTER` is written. */
const DELETE_AFTER = 6;
const NUM_AT_ONCE = 5;
/** Entries of the audit log between two flushes, and flushes between two retentions. */
const FLUSH_ENTRIES = 7;
const RETAIN_EVERY = 3;

export const pairIds = (round: number, k: number): [string, string] => {
  const digits = `${round.toString(16).padStart(4, '0')}${k.toString(16).padStart(7, '0')}`;
  return [`018bcfe5-6800-7000-8000-${digits}0`, `018bcfe5-6800-7000-8000-${digits}1`];
};
export const tenantOf = (k: number): string => WRITER_TENANTS[k % 2]!;
export const counterId = '018bcfe5-6800-7000-9000-000000000000';
export const entryText = (round: number, n: number): string => `round ${round} entry ${n}`;

export function pairOf(round: number, k: number): PutRecord[] {
  return pairIds(round, k).map((id, half) => ({
    id,
    tenant: tenantOf(k),
    kind: 'fact',
    expiresMs: null,
    fields: { quality: k, source: `planted word ${k}` },
    body: { round, k, half, text: 'x'.repeat((k * 37) % 3000) },
    vector: seededVector(round * 200_000 + 2 * k + half),
    space: SPACE,
  }));
}

async function write(store: MemoryStore, round: number, k: number): Promise<void> {
  const [from, to] = pairIds(round, k);
  await store.put(pairOf(round, k));
  say(`P ${k}`);
  await store.putEdges(tenantOf(k), [{ from, to, relation: 'pair', weight: k, confidence: 1 }]);
  say(`E ${k}`);
  const counter = pairOf(round, k)[0]!;
  await store.put([
    { ...counter, id: counterId, tenant: 'alpha', kind: 'state', fields: {}, vector: null, space: null },
  ]);
  say(`C ${k}`);
  if (k % 3 !== 0 || k < DELETE_AFTER) return;
  say(`d ${k - DELETE_AFTER}`);
  await store.delete(tenantOf(k - DELETE_AFTER), pairIds(round, k - DELETE_AFTER));
  say(`D ${k - DELETE_AFTER}`);
}

/** Entries one after the other; what was flushed is acknowledged, and old ones go to the archive. */
async function keepLog({ audit }: WholeMemory, round: number): Promise<never> {
  for (let n = 0, flushes = 1; ; flushes++) {
    for (let i = 0; i < FLUSH_ENTRIES; i++, n++) {
      audit.enqueue('alpha', auditInput({ query: entryText(round, n), queryEmbedding: null, space: null }));
    }
    await audit.flush();
    say(`W ${n - 1}`);
    if (flushes % RETAIN_EVERY === 0) await audit.retain('alpha');
  }
}

const say = (line: string): void => void writeSync(1, `${line}\n`);

/** Never ends by itself. */
export async function writeUntilKilled(folder: string, round: number, driver: SqliteDriver): Promise<void> {
  let numSteps = 0;
  const memory = await openWholeMemory({ folder, driver, onStep: (step) => say(`${step} ${numSteps++}`) });
  const { store } = memory;
  // An index is open from its first search on, and then saved as it changes.
  for (const tenant of WRITER_TENANTS) await store.nearest(tenant, { kinds: ['fact'], vector: seededVector(1), space: SPACE, k: 1 }); // prettier-ignore
  say('open 0');
  let next = 0;
  const writer = async (): Promise<never> => {
    for (;;) {
      const k = next++;
      await write(store, round, k);
      // What is not there at the start has no index yet.
      if (k < 4) await store.nearest(tenantOf(k), { kinds: ['fact'], vector: seededVector(1), space: SPACE, k: 1 });
    }
  };
  await Promise.all([keepLog(memory, round), ...Array.from({ length: NUM_AT_ONCE }, writer)]);
}
