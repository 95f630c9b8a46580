import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRandom } from '../../../core/random.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import { compileSources } from './compiled-sources.contract.ts';
import { counterId, pairIds, pairOf, tenantOf } from './crash-writer.contract.ts';
import { DRIVERS, newFolder, openAt } from './memory-setup.contract.ts';

/** `RUVLLM_CRASH_ROUNDS=200` for all of them. */
const NUM_ROUNDS = Number(process.env['RUVLLM_CRASH_ROUNDS'] ?? 20);
/** Longer than opening takes: so some die before they are open, and some with many pages in the WAL. */
const MAX_DELAY_MS = 250;

let root: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-crash-'));
  compileSources(root, ['platform/node/memory/crash-writer.contract.ts']);
  writeFileSync(
    join(root, 'writer.js'),
    `import { writeUntilKilled } from './out/platform/node/memory/crash-writer.contract.js';
     const [folder, round, driver] = process.argv.slice(2);
     await writeUntilKilled(folder, Number(round), driver);`,
  );
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** What a round has acknowledged, by the letter of what was done. */
type Said = Map<string, Set<number>>;

async function runUntilKilled(folder: string, round: number, driver: string, delayMs: number): Promise<Said> {
  const child = spawn(process.execPath, [join(root, 'writer.js'), folder, String(round), driver], { stdio: ['ignore', 'pipe', 'inherit'] }); // prettier-ignore
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data.toString()));
  // The first rounds may die at any moment of the opening, the others write.
  if (round % 4 !== 0) await once(child.stdout, 'data');
  await new Promise((resolve) => setTimeout(resolve, delayMs));
  const closed = once(child, 'close');
  expect(child.kill('SIGKILL')).toBe(true);
  await closed;
  const said: Said = new Map();
  for (const line of text.split('\n')) {
    const [letter, k] = line.split(' ');
    if (k === undefined) continue;
    said.set(letter!, (said.get(letter!) ?? new Set()).add(Number(k)));
  }
  return said;
}

async function expectKept(store: MemoryStore, round: number, said: Said): Promise<number> {
  const all = (letter: string): Set<number> => said.get(letter) ?? new Set();
  const last = Math.max(-1, ...all('P')) + 10;
  let numKept = 0;
  for (let k = 0; k <= last; k++) {
    const found = await store.get(tenantOf(k), pairIds(round, k));
    const isThere = found.map((record) => record !== null);
    expect([k, isThere[0]]).toEqual([k, isThere[1]]); // both or none
    if (all('D').has(k)) expect([k, isThere[0]]).toEqual([k, false]);
    else if (all('P').has(k) && !all('d').has(k)) expect([k, isThere[0]]).toEqual([k, true]);
    if (!isThere[0]) continue;
    pairOf(round, k).forEach((put, half) => expect(found[half]).toMatchObject({ ...put, version: 1 }));
    const edges = await store.edgesOf(tenantOf(k), { ids: [pairIds(round, k)[0]], direction: 'out', limit: 9 });
    if (all('E').has(k)) expect(edges).toMatchObject([{ relation: 'pair', weight: k }]);
    const filter = { fields: [{ field: 'source', is: '=', value: `word ${k}` }, { field: 'quality', is: '=', value: k }] } as const; // prettier-ignore
    const page = await store.find(tenantOf(k), { kinds: ['fact'], filter, order: 'newest', limit: 1000 });
    expect(page.records.map(({ id }) => id)).toEqual(expect.arrayContaining(pairIds(round, k)));
    numKept++;
  }
  return numKept;
}

test.each(DRIVERS)(
  `[MS24] killed ${NUM_ROUNDS} times while it writes, the store has every write it acknowledged, and nothing half (%s)`,
  async (driver) => {
    const seed = Date.now() % 100_000;
    const random = createRandom(seed);
    const folder = newFolder();
    let [numAcknowledged, numKept, lastVersion] = [0, 0, 0];
    for (let round = 0; round < NUM_ROUNDS; round++) {
      const said = await runUntilKilled(folder, round, driver, random.next() * MAX_DELAY_MS);
      const { store } = openAt(folder, { driver });
      numKept += await expectKept(store, round, said);
      for (const list of said.values()) numAcknowledged += list.size;
      const [counter] = await store.get('alpha', [counterId]);
      const numCounted = said.get('C')?.size ?? 0;
      expect(counter?.version ?? 0).toBeGreaterThanOrEqual(lastVersion + numCounted);
      lastVersion = counter?.version ?? 0;
      await store.checkIntegrity();
      await store.close();
    }
    console.log(`${driver}, seed ${seed}: ${NUM_ROUNDS} kills, ${numAcknowledged} acknowledgements, ${numKept} pairs found again`); // prettier-ignore
    expect(numKept).toBeGreaterThan(NUM_ROUNDS);
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
