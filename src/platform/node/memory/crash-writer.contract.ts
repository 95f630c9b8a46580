// A process that writes until it is killed, and says over a pipe what was acknowledged; run by `crash.test.ts`.
import { writeSync } from 'node:fs';
import { createBruteForce } from '../../../memory/store/brute-force.contract.ts';
import type { MemoryStore, PutRecord } from '../../../memory/types.ts';
import { openMemoryStore, type SqliteDriver } from './open-memory-store.ts';

export const WRITER_TENANTS = ['alpha', 'beta'] as const;
/** Pair `k` of round `r` is deleted while pair `k + DELETE_AFTER` is written. */
const DELETE_AFTER = 6;
const NUM_AT_ONCE = 5;

export const pairIds = (round: number, k: number): [string, string] => {
  const digits = `${round.toString(16).padStart(4, '0')}${k.toString(16).padStart(7, '0')}`;
  return [`018bcfe5-6800-7000-8000-${digits}0`, `018bcfe5-6800-7000-8000-${digits}1`];
};
export const tenantOf = (k: number): string => WRITER_TENANTS[k % 2]!;
export const counterId = '018bcfe5-6800-7000-9000-000000000000';

export function pairOf(round: number, k: number): PutRecord[] {
  return pairIds(round, k).map((id, half) => ({
    id,
    tenant: tenantOf(k),
    kind: 'fact',
    expiresMs: null,
    fields: { quality: k, source: `word ${k}` },
    body: { round, k, half, text: 'x'.repeat((k * 37) % 3000) },
    vector: Float32Array.of(1 + k, round, half),
    space: 'space',
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

const say = (line: string): void => void writeSync(1, `${line}\n`);

/** Never ends by itself. */
export async function writeUntilKilled(folder: string, round: number, driver: SqliteDriver): Promise<void> {
  const { store } = openMemoryStore({ folder, masterKey: { key: new Uint8Array(32).fill(7) }, createIndex: createBruteForce, driver }); // prettier-ignore
  say('open');
  let next = 0;
  const writer = async (): Promise<never> => {
    for (;;) await write(store, round, next++);
  };
  await Promise.all(Array.from({ length: NUM_AT_ONCE }, writer));
}
