// Every kind of state file, damaged in every way: nothing is lost silently, nothing wrong is returned, the rest is served.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import {
  corruptFile,
  CORRUPTIONS,
  counterpartOf,
  createStateOracle,
  findStateFiles,
  type StateFile,
  takeSnapshot,
} from '../../../test/support/state-corruptions.ts';
import { auditInput } from '../../memory/audit/harness.contract.ts';
import { STATE_TENANT } from '../../memory/state-tenant.ts';
import { idOf, recordOf } from '../../memory/store/store-setup.contract.ts';
import { openWholeMemory, seededVector, type WholeMemory } from '../../platform/node/memory/crash-memory.contract.ts';

const TENANT = 'acme';
const NUM_RECORDS = 60;
const data = mkdtempSync(join(tmpdir(), 'ruvllm-corrupt-'));
const folder = join(data, 'memory');
const oracle = createStateOracle();
const textOf = (i: number): string => `text ${i}`;
let older: ReturnType<typeof takeSnapshot>;
/** As a killed process leaves it. */
let killed: ReturnType<typeof takeSnapshot>;

async function add(memory: WholeMemory, from: number, to: number): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  await memory.store.put(
    numbers.map((i) => recordOf(i, { tenant: TENANT, body: { text: textOf(i) }, vector: seededVector(i), space: 's' })),
  );
  for (const i of numbers) oracle.acknowledge(idOf(i), textOf(i));
  for (const i of numbers.slice(0, 20)) {
    memory.audit.enqueue(TENANT, auditInput({ query: `query ${i}`, queryEmbedding: null, space: null }));
  }
  await memory.audit.flush();
}

beforeAll(async () => {
  const first = await openWholeMemory({ folder });
  await add(first, 0, 30);
  await first.audit.retain(TENANT);
  // Loads the indexes, which are saved when the store closes.
  await first.store.nearest(TENANT, { kinds: ['fact'], vector: seededVector(1), space: 's', k: 1 });
  await first.store.match(TENANT, { kinds: ['fact'], text: 'text', k: 1 });
  await first.close();
  older = takeSnapshot(data);
  const memory = await openWholeMemory({ folder });
  await add(memory, 30, NUM_RECORDS);
  await memory.store.put([recordOf(0, { tenant: STATE_TENANT, kind: 'state', body: {} })]);
  killed = takeSnapshot(data);
  await memory.close();
}, 60_000);

afterAll(() => {
  for (const path of [data, older?.copy, killed?.copy]) if (path !== undefined) rmSync(path, { recursive: true, force: true }); // prettier-ignore
});

/** The lock names this process, which runs: it is tested with the folder's lock. */
function startFromKilled(): void {
  killed.restore();
  for (const name of readdirSync(folder)) if (name.startsWith('owner.lock')) rmSync(join(folder, name));
}

async function judge(memory: WholeMemory) {
  await memory.store.state.scrub();
  return oracle.judge({
    async read(id) {
      try {
        const [record] = await memory.store.get(TENANT, [id]);
        return record == null ? 'absent' : { text: (record.body as { text: string }).text };
      } catch {
        return 'failed';
      }
    },
    isDegraded: async () => memory.store.state.problem() !== null,
    async servesRest() {
      await memory.store.put([recordOf(9000, { tenant: 'rest', body: { text: 'new' } })]);
      const [record] = await memory.store.get('rest', [idOf(9000)]);
      const { records } = await memory.store.find('rest', { kinds: [record!.kind], order: 'newest', limit: 10 });
      return records.length === 1;
    },
  });
}

const VERDICT = { numSilentlyLost: 0, numWrong: 0, servesRest: true };

test('a killed memory that nobody damaged has everything and says nothing', async () => {
  startFromKilled();
  const memory = await openWholeMemory({ folder });
  expect(await judge(memory)).toEqual({ ...VERDICT, isDegraded: false });
  expect(await memory.audit.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 40 });
  await memory.close();
});

/** One file of each kind in `npm test`; of the database and its log each damage, of the others some. */
const isChosen = campaign<(kind: string, index: number) => boolean>({
  short: (kind, index) => ['database', 'log', 'head'].includes(kind) || index % 3 === 0,
  long: () => true,
});

describe.each(['database', 'log', 'head', 'header', 'tenant-key', 'archive', 'derived'])('%s', (kind) => {
  test.each(CORRUPTIONS.filter((_, index) => isChosen(kind, index)))(
    '[MS37] $name',
    async (corruption) => {
      startFromKilled();
      const all = findStateFiles(data).filter((file) => file.kind === kind);
      expect(all.length).toBeGreaterThan(0);
      for (const file of campaign<readonly StateFile[]>({ short: all.slice(0, 3), long: all })) {
        startFromKilled();
        if (!corruptFile(file, corruption, counterpartOf(file, data, older.copy))) continue;
        const memory = await openWholeMemory({ folder });
        try {
          const verdict = await judge(memory);
          expect({ file: file.path, ...verdict }).toMatchObject(VERDICT);
          const { records } = await memory.store.find(TENANT, { kinds: ['fact'], order: 'oldest', limit: 100 }).catch(() => ({ records: [] })); // prettier-ignore
          if (records.length < NUM_RECORDS) expect([file.path, verdict.isDegraded]).toEqual([file.path, true]);
          const report = await memory.audit.verify(TENANT).catch(() => ({ isIntact: false, numChecked: 0 }));
          if (report.isIntact) expect([file.path, report.numChecked]).toEqual([file.path, 40]);
        } finally {
          await memory.close();
        }
      }
    },
    60_000,
  );
});

test('[MS37] a loss is remembered over restarts until it is accepted by a repair', async () => {
  startFromKilled();
  const database = findStateFiles(data).find(({ kind }) => kind === 'database')!;
  corruptFile(database, CORRUPTIONS[0]!, null);
  for (let start = 0; start < 2; start++) {
    const memory = await openWholeMemory({ folder });
    expect(memory.store.state.problem()).toContain('memory.db is empty');
    expect((await memory.audit.verify(TENANT)).brokenAt?.reason).toContain('may be missing');
    await memory.close();
  }
  const repaired = await openWholeMemory({ folder, isRepair: true });
  expect(repaired.recovered).toContain('records were recovered');
  expect(repaired.store.state.problem()).toBeNull();
  await repaired.close();
  const after = await openWholeMemory({ folder });
  expect(after.store.state.problem()).toBeNull();
  await after.close();
});

test('[MS38] a backup is a snapshot of the open memory, and a damaged one is refused', async () => {
  startFromKilled();
  const { restoreBackup } = await import('./restore-backup.ts');
  const root = join(data, 'backups');
  const memory = await openWholeMemory({ folder });
  const writing = memory.backUp({ root, keep: 2, apiKeyFolder: null });
  await memory.store.put([recordOf(500, { tenant: TENANT, body: { text: 'later' } })]);
  const { path, numRecords } = await writing;
  await memory.store.delete(TENANT, [idOf(0)]);
  await expect(restoreBackup({ backup: root, atMs: null, folder, masterKey: { key: new Uint8Array(32).fill(7) }, apiKeyFolder: null })).rejects.toMatchObject({ code: 'conflict' }); // prettier-ignore
  await memory.close();
  const options = { backup: root, folder, masterKey: { key: new Uint8Array(32).fill(7) }, apiKeyFolder: null };
  await expect(restoreBackup({ ...options, atMs: 5 })).rejects.toMatchObject({ code: 'not_found' });
  const copy = takeSnapshot(path);
  for (const file of ['memory/memory.db', 'memory/memory.json', 'backup.json']) {
    for (const corruption of CORRUPTIONS.slice(0, 6)) {
      corruptFile({ kind: 'database', path: join(path, file) }, corruption, null);
      await expect(restoreBackup({ ...options, backup: path, atMs: null }), file + corruption.name).rejects.toThrow();
      copy.restore();
    }
  }
  const report = await restoreBackup({ ...options, atMs: null });
  expect(report).toMatchObject({ backup: path, numRecords });
  const restored = await openWholeMemory({ folder });
  expect(await judge(restored)).toEqual({ ...VERDICT, isDegraded: false });
  expect(await restored.audit.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 40 });
  await restored.store.checkIntegrity();
  await restored.close();
  copy.dispose();
  const aside = await openWholeMemory({ folder: report.aside! });
  expect(await aside.store.get(TENANT, [idOf(0)])).toEqual([null]); // the state before the restore
  await aside.close();
}, 60_000);
