// The power fails at every flush of a whole memory: store, keys, indexes, audit log and archive.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { campaign } from '../../../../test/support/campaign.ts';
import { createRandom } from '../../../core/random.ts';
import { auditInput } from '../../../memory/audit/harness.contract.ts';
import { openWholeMemory, type WholeMemory } from './crash-memory.contract.ts';
import { entryText, pairIds, pairOf, tenantOf } from './crash-writer.contract.ts';
import { newFolder } from './memory-setup.contract.ts';
import { type Loss, recordDisk, type SimulatedDisk } from './simulated-disk.contract.ts';

const NUM_PAIRS = 36;
const NUM_ENTRIES = 60;
const LOSSES: readonly Loss[] = ['all unflushed', 'some unflushed'];
/** Of all cuts; each is tried with both losses. */
const NUM_CUTS = campaign({ short: 24, long: Infinity });
/** Of each cut: which writes were lost or torn is drawn anew. */
const NUM_DRAWS = campaign({ short: 1, long: 5 });

/** Writes, deletes and logs, and tells the disk what was acknowledged. */
async function work({ store, audit }: WholeMemory, disk: SimulatedDisk): Promise<void> {
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let k = next++; k < NUM_PAIRS; k = next++) {
      await store.put(pairOf(0, k));
      disk.acknowledge(`put ${k}`);
      if (k % 3 !== 0 || k < 6) continue;
      disk.acknowledge(`deleting ${k - 6}`);
      await store.delete(tenantOf(k - 6), pairIds(0, k - 6));
      disk.acknowledge(`deleted ${k - 6}`);
    }
  };
  const logger = async (): Promise<void> => {
    for (let n = 0; n < NUM_ENTRIES; n++) {
      audit.enqueue('alpha', auditInput({ query: entryText(0, n), queryEmbedding: null, space: null }));
      if (n % 7 !== 6) continue;
      await audit.flush();
      disk.acknowledge(`entry ${n}`);
      if (n % 3 === 0) await audit.retain('alpha');
    }
  };
  await Promise.all([logger(), writer(), writer(), writer()]);
}

async function expectAll({ store, audit }: WholeMemory, acknowledged: ReadonlySet<string>): Promise<number> {
  for (let k = 0; k < NUM_PAIRS; k++) {
    const found = await store.get(tenantOf(k), pairIds(0, k));
    const isThere = found.map((record) => record !== null);
    expect([k, isThere[0]]).toEqual([k, isThere[1]]);
    if (acknowledged.has(`deleted ${k}`)) expect([k, isThere[0]]).toEqual([k, false]);
    else if (acknowledged.has(`put ${k}`) && !acknowledged.has(`deleting ${k}`))
      expect([k, isThere[0]]).toEqual([k, true]);
    if (isThere[0]) pairOf(0, k).forEach((put, half) => expect(found[half]).toMatchObject(put));
  }
  const { brokenAt } = await audit.verify('alpha');
  expect(brokenAt).toBeNull();
  const entries: string[] = [];
  for await (const { entry } of audit.export('alpha')) entries.push(entry.query);
  expect(entries).toEqual(entries.map((_, n) => entryText(0, n)));
  const lastEntry = Math.max(-1, ...[...acknowledged].map((text) => Number(/^entry (\d+)$/.exec(text)?.[1] ?? -1)));
  expect(entries.length).toBeGreaterThan(lastEntry);
  await store.checkIntegrity();
  return acknowledged.size;
}

test('[MS24] [WL5] after a power loss at any flush the memory has all that it acknowledged', async () => {
  const folder = newFolder();
  const disk = recordDisk(folder);
  let reports: string[] = [];
  const options = {
    driver: 'wasm',
    saveIndexEvery: 20,
    report: (message: string) => void reports.push(message),
  } as const;
  try {
    const memory = await openWholeMemory({ folder, files: disk.files, ...options });
    await work(memory, disk);
    await memory.close();
  } finally {
    disk.stop();
  }
  const all = disk.cuts();
  expect(all.length).toBeGreaterThan(100);
  const step = Math.max(1, Math.floor(all.length / NUM_CUTS));
  const offset = Date.now() % step;
  const chosen = all.filter((_, i) => i % step === offset);
  let numAcknowledged = 0;
  for (const cut of chosen) {
    const losses = Array.from({ length: NUM_DRAWS }, (_, draw) => LOSSES.map((loss) => ({ loss, draw }))).flat();
    for (const { loss, draw } of losses) {
      const copy = join(newFolder(), 'memory');
      disk.rebuild(cut, copy, loss, createRandom(cut + 100_000 * draw));
      // Locks of a process that lives, unlike the one that had the power.
      for (const lock of ['owner.lock', 'memory.db.lock']) rmSync(join(copy, lock), { recursive: true, force: true });
      const acknowledged = disk.acknowledgedBefore(cut);
      if (!existsSync(join(copy, 'memory.json')) && acknowledged.size === 0) continue;
      reports = [];
      const memory = await openWholeMemory({ folder: copy, ...options }).catch((error: unknown) => {
        throw new Error(`power lost before event ${cut}, ${loss}, draw ${draw}: the memory does not open`, {
          cause: error,
        });
      });
      try {
        numAcknowledged += await expectAll(memory, acknowledged);
      } catch (error) {
        throw new Error(
          `power lost before event ${cut}, ${loss}, draw ${draw}, after ${acknowledged.size} acknowledgements`,
          {
            cause: error,
          },
        );
      } finally {
        await memory.close();
        rmSync(copy, { recursive: true, force: true });
      }
    }
  }
  console.log(
    `power loss: ${chosen.length} of ${all.length} moments, ${numAcknowledged} acknowledged writes looked at`,
  );
}, 3_600_000);
