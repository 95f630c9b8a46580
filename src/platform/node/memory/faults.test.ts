import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { campaign } from '../../../../test/support/campaign.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { createRandom } from '../../../core/random.ts';
import { directionOf, idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import { breakDisk, type Fault, type FaultyDisk, type Persistence } from './faults.contract.ts';
import { newFolder, openAt } from './memory-setup.contract.ts';

const NUM_PUTS = 5;
let disk: FaultyDisk | null = null;
afterEach(() => disk?.heal());

const pair = (i: number) => [2 * i, 2 * i + 1].map((j) => recordOf(j, { body: 'x'.repeat(3000 + j), fields: { source: 'w' }, vector: directionOf(j), space: 's' })); // prettier-ignore

interface Outcome {
  readonly acknowledged: readonly number[];
  readonly failures: readonly unknown[];
}

/** Some pairs after each other, the last ones at once; the first of them is deleted again. */
async function work(store: MemoryStore): Promise<Outcome & { readonly isDeleted: boolean | null }> {
  const acknowledged: number[] = [];
  const failures: unknown[] = [];
  const put = (i: number): Promise<void> =>
    store.put(pair(i)).then(
      () => void acknowledged.push(i),
      (error: unknown) => void failures.push(error),
    );
  for (let i = 0; i < NUM_PUTS - 2; i++) await put(i);
  await Promise.all([put(NUM_PUTS - 2), put(NUM_PUTS - 1)]);
  const isDeleted = await store.delete('alpha', [idOf(0), idOf(1)]).then(
    () => true,
    (error: unknown) => (failures.push(error), null),
  );
  return { acknowledged, failures, isDeleted };
}

async function expectKept(store: MemoryStore, { acknowledged }: Outcome, isDeleted: boolean | null): Promise<void> {
  for (let i = 0; i < NUM_PUTS; i++) {
    const found = await store.get('alpha', [idOf(2 * i), idOf(2 * i + 1)]);
    const isThere = found.map((record) => record !== null);
    expect(isThere[0]).toBe(isThere[1]);
    if (i === 0 && isDeleted === true) expect(isThere[0]).toBe(false);
    else if (acknowledged.includes(i) && !(i === 0 && isDeleted === null)) expect([i, isThere[0]]).toEqual([i, true]);
    if (isThere[0]) pair(i).forEach((put, half) => expect(found[half]).toMatchObject(put));
  }
}

const expectTyped = (errors: readonly unknown[], fault: Fault): void => {
  for (const error of errors) {
    expect(error).toBeInstanceOf(RuvLLMError);
    expect(['io', 'disk_full'], (error as RuvLLMError).message).toContain((error as RuvLLMError).code);
    if (fault !== 'full disk') expect((error as RuvLLMError).code).toBe('io');
  }
};

/** Opens, works, heals, works on, and looks again after a restart; the calls of the disk, and whether anything was felt. */
async function runWith(
  n: number,
  fault: Fault,
  persistence: Persistence,
): Promise<{ numCalls: number; errors: unknown[] }> {
  const folder = newFolder();
  const first = openAt(folder, { driver: 'wasm' });
  await first.store.put([recordOf(1000)]);
  await first.store.close();

  disk = breakDisk(n, fault, persistence);
  const errors: unknown[] = [];
  let outcome: Awaited<ReturnType<typeof work>> = { acknowledged: [], failures: [], isDeleted: null };
  try {
    const { store } = openAt(folder, { driver: 'wasm', files: disk.files });
    outcome = await work(store);
    errors.push(...outcome.failures);
    disk.heal();
    await expectKept(store, outcome, outcome.isDeleted);
    await store.put([recordOf(2000)]); // it goes on by itself
    await store.checkIntegrity();
    await store.close();
  } catch (error) {
    disk.heal();
    // The opening failed: that is all that may.
    if (outcome.acknowledged.length + outcome.failures.length > 0) throw error;
    errors.push(error);
  }
  expectTyped(errors, fault);
  const again = openAt(folder, { driver: 'wasm' });
  await expectKept(again.store, outcome, outcome.isDeleted);
  expect((await again.store.get('alpha', [idOf(1000)]))[0]).not.toBeNull();
  await again.store.checkIntegrity();
  await again.store.close();
  rmSync(folder, { recursive: true });
  return { numCalls: disk.numCalls, errors };
}

/** The short form has a prime step: it meets calls of every kind, but not each call of a kind. */
const STEP = campaign({ short: 13, long: 1 });

describe('a disk that fails', () => {
  test.each<[Fault, Persistence]>([
    ['I/O error', 'once'],
    ['I/O error', 'from'],
    ['short write', 'once'],
    ['short write', 'from'],
    ['full disk', 'once'],
    ['full disk', 'from'],
  ])(
    `[MS25] %s (%s, one call in ${STEP}): typed errors, nothing acknowledged is lost, and it goes on`,
    async (fault, persistence) => {
      const { numCalls, errors } = await runWith(0, fault, 'once');
      expect(errors).toEqual([]);
      expect(numCalls).toBeGreaterThan(15);
      let numFelt = 0;
      const codes = new Set<string>();
      for (let n = 1; n <= numCalls; n += STEP) {
        const felt = (await runWith(n, fault, persistence)).errors;
        if (felt.length > 0) numFelt++;
        for (const error of felt) codes.add((error as RuvLLMError).code);
      }
      console.log(
        `${fault}, ${persistence}: ${numFelt} of ${Math.ceil(numCalls / STEP)} runs felt it (${[...codes].join(', ')})`,
      );
      expect(numFelt).toBeGreaterThan(3);
      if (fault === 'full disk' && persistence === 'from') expect([...codes]).toEqual(['disk_full']);
    },
  );
});

const NUM_DAMAGED = campaign({ short: 20, long: 60 });

test('[MS26] flipped bytes are an error or change nothing: never other data', async () => {
  const folder = newFolder();
  const { store } = openAt(folder);
  const records = Array.from({ length: 150 }, (_, i) => recordOf(i, { body: 'x'.repeat(2000), fields: { source: `w${i}` }, vector: directionOf(i), space: 's' })); // prettier-ignore
  await store.put(records);
  await store.putEdges('alpha', [{ from: idOf(1), to: idOf(2), relation: 'r', weight: 1, confidence: 1 }]);
  await store.close();
  const path = join(folder, 'memory.db');
  copyFileSync(path, join(folder, 'good'));
  const good = readFileSync(path);
  const random = createRandom(11);
  const seen = { typed: 0, detected: 0, harmless: 0 };
  for (let round = 0; round < NUM_DAMAGED; round++) {
    const bad = Buffer.from(good);
    const at = Math.floor(random.next() * bad.length);
    for (let i = at; i < Math.min(at + 16, bad.length); i++) bad[i]! ^= 0x5a;
    writeFileSync(path, bad);
    let damaged: MemoryStore | null = null;
    let isFelt = false;
    const look = async <T>(run: () => Promise<T>): Promise<T | null> => {
      try {
        return await run();
      } catch (error) {
        expect(error).toMatchObject({ name: 'RuvLLMError', code: expect.stringMatching(/^(io|unsupported)$/) });
        isFelt = true;
        return null;
      }
    };
    damaged = await look(async () => openAt(folder).store);
    if (damaged !== null) {
      const memory = damaged;
      for (const record of records) {
        const found = await look(() => memory.get('alpha', [record.id]));
        if (found !== null && found[0] !== null) expect(found[0]).toMatchObject(record);
      }
      const near = await look(() =>
        memory.nearest('alpha', { kinds: ['fact'], vector: directionOf(3), space: 's', k: 5 }),
      );
      for (const { record } of near ?? []) expect(record).toMatchObject(records.find(({ id }) => id === record.id)!);
      if (isFelt) seen.typed++;
      isFelt = false;
      await look(() => memory.checkIntegrity());
      if (isFelt) seen.detected++;
      else seen.harmless++;
      await memory.close().catch(() => {});
    } else seen.typed++;
    rmSync(`${path}-wal`, { force: true });
  }
  console.log(`${NUM_DAMAGED} damaged files: ${JSON.stringify(seen)}`);
  expect(seen.detected).toBeGreaterThan(NUM_DAMAGED / 3);
});
