import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { campaign } from '../../../../test/support/campaign.ts';
import { createRandom } from '../../../core/random.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import type { AuditLog } from '../../../memory/audit/index.ts';
import { expectNothingPlain } from './canary.contract.ts';
import { bundleSources } from './compiled-sources.contract.ts';
import { openWholeMemory, SPACE } from './crash-memory.contract.ts';
import { counterId, pairIds, pairOf, tenantOf } from './crash-writer.contract.ts';
import { DRIVERS, masterKey, newFolder, openAt } from './memory-setup.contract.ts';

/** The short form kills at each of the four moments once; a kill inside of a save or a segment is certain in the long form only. */
const NUM_ROUNDS = campaign({ short: 4, long: 200 });
/** Longer than opening takes: so some die before they are open, and some with many pages in the WAL. */
const MAX_DELAY_MS = 400;
/** Then another folder: what is looked at after each kill grows with each round. */
const ROUNDS_PER_FOLDER = 20;

let root: string;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-crash-'));
  await bundleSources(root, ['platform/node/memory/crash-writer.contract.ts']);
  writeFileSync(
    join(root, 'writer.js'),
    `import { writeUntilKilled } from './crash-writer.contract.js';
     const [folder, round, driver] = process.argv.slice(2);
     await writeUntilKilled(folder, Number(round), driver);`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** What a round has acknowledged, by the word for what was done. */
type Said = Map<string, Set<number>>;
const last = (said: Said, word: string): number => Math.max(-1, ...(said.get(word) ?? []));

async function runUntilKilled(folder: string, round: number, driver: string, delayMs: number): Promise<Said> {
  const child = spawn(process.execPath, [join(root, 'writer.js'), folder, String(round), driver], { stdio: ['ignore', 'pipe', 'inherit'] }); // prettier-ignore
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data.toString()));
  // One may die at any moment of the opening, one writes for a while, two die while an index or a segment is written.
  const awaited = ['', 'P ', 'save ', 'archive '][round % 4]!;
  while (!text.includes(awaited)) await once(child.stdout, 'data');
  if (round % 4 < 2) await new Promise((resolve) => setTimeout(resolve, delayMs));
  else {
    // Not the first: that one makes the file.
    const numBefore = Math.floor((5 * delayMs) / MAX_DELAY_MS);
    while (text.split(awaited).length - 2 < numBefore) await once(child.stdout, 'data');
    if (delayMs % 2 < 1) await new Promise((resolve) => setTimeout(resolve, delayMs % 4));
  }
  const closed = once(child, 'close');
  expect(child.kill('SIGKILL')).toBe(true);
  await closed;
  return readSaid(text);
}

function readSaid(text: string): Said {
  const said: Said = new Map();
  for (const line of text.split('\n')) {
    const [word, k] = line.split(' ');
    if (k === undefined) continue;
    said.set(word!, (said.get(word!) ?? new Set()).add(Number(k)));
  }
  return said;
}

async function expectKept(store: MemoryStore, round: number, said: Said): Promise<number> {
  const all = (word: string): Set<number> => said.get(word) ?? new Set();
  let numKept = 0;
  for (let k = 0; k <= last(said, 'P') + 10; k++) {
    const found = await store.get(tenantOf(k), pairIds(round, k));
    const isThere = found.map((record) => record !== null);
    expect([k, isThere[0]]).toEqual([k, isThere[1]]); // both or none
    if (all('D').has(k)) expect([k, isThere[0]]).toEqual([k, false]);
    else if (all('P').has(k) && !all('d').has(k)) expect([k, isThere[0]]).toEqual([k, true]);
    if (!isThere[0]) continue;
    pairOf(round, k).forEach((put, half) => expect(found[half]).toMatchObject({ ...put, version: 1 }));
    const edges = await store.edgesOf(tenantOf(k), { ids: [pairIds(round, k)[0]], direction: 'out', limit: 9 });
    if (all('E').has(k)) expect(edges).toMatchObject([{ relation: 'pair', weight: k }]);
    const filter = { fields: [{ field: 'source', is: '=', value: `planted word ${k}` }, { field: 'quality', is: '=', value: k }] } as const; // prettier-ignore
    const page = await store.find(tenantOf(k), { kinds: ['fact'], filter, order: 'newest', limit: 1000 });
    expect(page.records.map(({ id }) => id)).toEqual(expect.arrayContaining(pairIds(round, k)));
    numKept++;
  }
  return numKept;
}

/** Through the index that was loaded from its file and brought up to date: each is found by its own vector, and none that is gone. */
async function expectFound(store: MemoryStore, round: number, said: Said): Promise<void> {
  for (let k = 0; k <= last(said, 'P'); k++) {
    for (const { id, tenant, vector } of pairOf(round, k)) {
      const [there] = await store.get(tenant, [id]);
      const near = await store.nearest(tenant, { kinds: ['fact'], vector: vector!, space: SPACE, k: 1 });
      expect([id, near[0]?.record.id === id]).toEqual([id, there !== null]);
    }
  }
}

/** The log of a killed run: what is there are its first entries, all that were acknowledged among them, and the gap is told. */
async function expectSuffixLost(audit: AuditLog, round: number, said: Said): Promise<boolean> {
  const report = await audit.verify('alpha');
  expect(report.brokenAt).toBeNull();
  const there: { n: number; sequence: number; runId: string }[] = [];
  for await (const { entry, link } of audit.export('alpha')) {
    const [, of, n] = /^round (\d+) entry (\d+)$/.exec(entry.query)!;
    if (Number(of) === round) there.push({ n: Number(n), sequence: link.sequence, runId: link.runId });
  }
  expect(there.map(({ n }) => n)).toEqual(there.map((_, i) => i));
  expect(there.length).toBeGreaterThan(last(said, 'W'));
  const newest = there.at(-1);
  if (newest === undefined) return false;
  expect(audit.stats().gaps).toEqual([expect.objectContaining({ runId: newest.runId })]);
  expect(report.gaps).toContainEqual(expect.objectContaining({ runId: newest.runId, afterSequence: newest.sequence }));
  return true;
}

const countFiles = (folder: string, ending: string): number =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending)).length
    : 0;

test.each(DRIVERS)(
  `[MS24] [WL5] killed ${NUM_ROUNDS} times while it writes, the memory has every write it acknowledged, and nothing half (%s)`,
  async (driver) => {
    const seed = Date.now() % 100_000;
    const random = createRandom(seed);
    const numbers = { acknowledged: 0, pairs: 0, gaps: 0, inSave: 0, inSegment: 0, graphsLoaded: 0, indexFiles: 0, segments: 0 }; // prettier-ignore
    const reports: string[] = [];
    let [folder, lastVersion] = ['', 0];
    for (let round = 0; round < NUM_ROUNDS; round++) {
      if (round % ROUNDS_PER_FOLDER === 0) [folder, lastVersion] = [newFolder(), 0];
      const said = await runUntilKilled(folder, round, driver, random.next() * MAX_DELAY_MS);
      if (existsSync(folder)) expectNothingPlain(folder, ['xxxxxxxx', 'planted word', ' entry ', masterKey.key]); // prettier-ignore
      const memory = await openWholeMemory({
        folder,
        driver,
        report: (message) => void reports.push(message),
        onLoad: (hasGraph) => void (numbers.graphsLoaded += Number(hasGraph)),
      });
      const { store, audit } = memory;
      try {
        numbers.pairs += await expectKept(store, round, said);
        await expectFound(store, round, said);
        if (await expectSuffixLost(audit, round, said)) numbers.gaps++;
        const [counter] = await store.get('alpha', [counterId]);
        const numCounted = said.get('C')?.size ?? 0;
        expect(counter?.version ?? 0).toBeGreaterThanOrEqual(lastVersion + numCounted);
        lastVersion = counter?.version ?? 0;
        await store.checkIntegrity();
      } finally {
        await memory.close();
      }
      for (const list of said.values()) numbers.acknowledged += list.size;
      if (last(said, 'save') > last(said, 'saved')) numbers.inSave++;
      if (last(said, 'archive') > last(said, 'archived')) numbers.inSegment++;
      numbers.indexFiles = Math.max(numbers.indexFiles, countFiles(join(folder, 'vectors'), '.vectors'));
      numbers.segments = Math.max(numbers.segments, countFiles(join(folder, 'archive'), '.seg'));
    }
    console.log(`${driver}, seed ${seed}, ${NUM_ROUNDS} kills: ${JSON.stringify(numbers)}`);
    expect(reports).toEqual([]); // no index was damaged: each was the old or the new one
    expect(numbers.pairs).toBeGreaterThan(NUM_ROUNDS);
    expect(numbers.indexFiles).toBe(2);
    for (const name of ['gaps', 'graphsLoaded', 'segments'] as const) expect([name, numbers[name] > 0]).toEqual([name, true]); // prettier-ignore
    if (NUM_ROUNDS >= 100) expect([numbers.inSave > 0, numbers.inSegment > 0]).toEqual([true, true]);
  },
  3_600_000,
);

/** KiB that no file may outgrow: the database's first pages, its WAL, and on to those of an index. */
const ALL_LIMITS_KIB = [8, 24, 40, 64, 100, 160, 260, 420, 700, 1100, 1800, 2600, 4000];
const LIMITS_KIB = campaign({ short: [24, 160, 1100], long: ALL_LIMITS_KIB });

test.skipIf(process.platform === 'win32').each(DRIVERS)(
  '[MS25] a process whose files must not grow: a write is cut short, then refused; what it acknowledged is there (%s)',
  async (driver) => {
    let numRefused = 0;
    for (const [round, limitKib] of LIMITS_KIB.entries()) {
      const folder = newFolder();
      // The shell's limit is the system's: it holds for SQLite inside of Node, too, which no test can reach otherwise.
      const command = `ulimit -f ${limitKib} && exec "$0" "$@"`;
      const child = spawn('bash', ['-c', command, process.execPath, join(root, 'writer.js'), folder, String(round), driver], { stdio: ['ignore', 'pipe', 'pipe'] }); // prettier-ignore
      let [text, complaint] = ['', ''];
      child.stdout.on('data', (data: Buffer) => (text += data.toString()));
      child.stderr.on('data', (data: Buffer) => (complaint += data.toString()));
      // With so much room it may go on; counted from where it works, which on a slow machine comes late.
      let timer: NodeJS.Timeout | undefined;
      child.stdout.once('data', () => (timer = setTimeout(() => child.kill('SIGKILL'), 10_000)));
      await once(child, 'close');
      clearTimeout(timer);
      if (child.exitCode !== null) {
        expect(complaint).toMatch(/code: '(io|disk_full)'/);
        numRefused++;
      }
      const said = readSaid(text);
      if (!existsSync(folder)) continue;
      const memory = await openWholeMemory({ folder, driver });
      try {
        await expectKept(memory.store, round, said);
        await expectFound(memory.store, round, said);
        await expectSuffixLost(memory.audit, round, said);
        await memory.store.checkIntegrity();
      } finally {
        await memory.close();
      }
    }
    console.log(`${driver}: ${numRefused} of ${LIMITS_KIB.length} limits were met`);
    expect(numRefused).toBeGreaterThan(LIMITS_KIB.length / 2);
  },
  600_000,
);

test('[MS21] a process that has the folder open keeps others out until it is killed', async () => {
  const folder = newFolder();
  const child = spawn(process.execPath, [join(root, 'writer.js'), folder, '0', 'wasm'], { stdio: ['ignore', 'pipe', 'inherit'] }); // prettier-ignore
  await once(child.stdout, 'data');
  for (const driver of DRIVERS) {
    expect(() => openAt(folder, { driver })).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringContaining(`in use by process ${child.pid}`) }),
    );
  }
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
  await openAt(folder).store.checkIntegrity();
});
