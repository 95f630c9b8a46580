import { cpSync, rmSync } from 'node:fs';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { campaign, repeatedCase } from '../../../../test/support/campaign.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { createRandom } from '../../../core/random.ts';
import { idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import { auditInput } from '../../../memory/audit/harness.contract.ts';
import { openWholeMemory, seededVector, SPACE, type WholeMemory } from './crash-memory.contract.ts';
import type { Fault, Persistence } from './faults.contract.ts';
import { countConcerned, watchDisk, type WatchedDisk } from './faulty-files.contract.ts';
import { newFolder } from './memory-setup.contract.ts';

/** So many calls of each kind of fault, spread over all; the long form has every call. */
const SAMPLE = campaign({ short: 3, long: Infinity });

/** Exactly which calls, so that it takes as long each time. */
function chooseCalls(numCalls: number, seed: number): number[] {
  const one = repeatedCase();
  if (one !== null) return one <= numCalls ? [one] : [];
  const numChosen = Math.min(SAMPLE, numCalls);
  const shift = numChosen === numCalls ? 0 : createRandom(seed).next();
  return Array.from({ length: numChosen }, (_, i) => 1 + Math.floor(((i + shift) * numCalls) / numChosen));
}
const NUM_OLD = 60;
const NUM_ENTRIES = 30;

let template: string;
let disk: WatchedDisk | null = null;
afterEach(() => disk?.heal());

const fact = (i: number, tenant = 'alpha') => recordOf(i, { tenant, body: 'x'.repeat(500 + i), fields: { source: 'w' }, vector: seededVector(i), space: SPACE }); // prettier-ignore
const near = (memory: WholeMemory, tenant: string, i: number) =>
  memory.store.nearest(tenant, { kinds: ['fact'], vector: seededVector(i), space: SPACE, k: 1 });

async function log({ audit }: WholeMemory, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n++) {
    audit.enqueue('alpha', auditInput({ query: `entry ${n}`, queryEmbedding: null, space: null }));
  }
  await audit.flush();
}

/** A memory with a saved graph, a segment in the archive, and entries that are old enough to follow it. */
beforeAll(async () => {
  template = newFolder();
  const memory = await openWholeMemory({ folder: template, driver: 'wasm' });
  await memory.store.put(Array.from({ length: NUM_OLD }, (_, i) => fact(i)));
  await near(memory, 'alpha', 1);
  await log(memory, 0, NUM_ENTRIES);
  expect(await memory.audit.retain('alpha')).toMatchObject({ numSegments: 1 });
  await log(memory, NUM_ENTRIES, NUM_ENTRIES);
  await memory.close();
});

interface Outcome {
  readonly acknowledged: Map<string, number>;
  isDeleted: boolean;
  numEntries: number;
}

/** Everything that touches a file: records, an index, a key that is new, the log, its archive. */
async function work(memory: WholeMemory, outcome: Outcome, failures: unknown[]): Promise<void> {
  const attempt = (action: () => Promise<unknown>): Promise<boolean> =>
    action().then(() => true, (error: unknown) => (failures.push(error), false)); // prettier-ignore
  const put = async (i: number, tenant = 'alpha'): Promise<void> => {
    if (await attempt(() => memory.store.put([fact(i, tenant), fact(i + 1, tenant)]))) {
      outcome.acknowledged.set(`${tenant} ${i}`, i).set(`${tenant} ${i + 1}`, i + 1);
    }
  };
  await put(100);
  await attempt(() => near(memory, 'alpha', 1));
  await Promise.all([put(110), put(120, 'beta')]);
  outcome.isDeleted = await attempt(() => memory.store.delete('alpha', [idOf(0)]));
  if (await attempt(() => log(memory, 2 * NUM_ENTRIES, 8))) outcome.numEntries = 2 * NUM_ENTRIES + 8;
  await attempt(() => memory.audit.retain('alpha'));
  await attempt(() => memory.audit.verify('alpha')); // reads what is archived
  await put(130);
}

async function expectKept(folder: string, outcome: Outcome, isIndexHit: boolean): Promise<void> {
  const { acknowledged, isDeleted, numEntries } = outcome;
  const told: string[] = [];
  let numLoaded = 0;
  const memory = await openWholeMemory({
    folder,
    driver: 'wasm',
    report: (message) => told.push(message),
    onLoad: () => numLoaded++,
  });
  for (const [name, i] of acknowledged) {
    const tenant = name.split(' ')[0]!;
    expect([name, (await memory.store.get(tenant, [idOf(i)]))[0]]).toMatchObject([name, fact(i, tenant)]);
    expect([name, (await near(memory, tenant, i))[0]?.record.id]).toEqual([name, idOf(i)]);
  }
  for (let i = 1; i < NUM_OLD; i++) expect([i, (await near(memory, 'alpha', i))[0]?.record.id]).toEqual([i, idOf(i)]);
  if (isDeleted) expect((await memory.store.get('alpha', [idOf(0)]))[0]).toBeNull();
  expect(await memory.audit.verify('alpha')).toMatchObject({ brokenAt: null, numDropped: 0 });
  const there: string[] = [];
  for await (const { entry } of memory.audit.export('alpha')) there.push(entry.query);
  expect(there).toEqual(there.map((_, i) => `entry ${i}`));
  expect(there.length).toBeGreaterThanOrEqual(numEntries);
  await memory.store.checkIntegrity();
  await memory.close();
  // An index that was there before is never made anew, whatever hit it: a save that failed leaves the one before it.
  expect(numLoaded).toBeGreaterThanOrEqual(1);
  if (!isIndexHit) expect(told).toEqual([]);
}

async function runWith(
  n: number,
  fault: Fault,
  persistence: Persistence,
): Promise<{ disk: WatchedDisk; failures: unknown[] }> {
  // prettier-ignore
  const folder = newFolder();
  cpSync(template, folder, { recursive: true });
  const failures: unknown[] = [];
  const outcome: Outcome = { acknowledged: new Map(), isDeleted: false, numEntries: 2 * NUM_ENTRIES }; // prettier-ignore
  disk = watchDisk(folder, n, fault, persistence);
  let memory: WholeMemory | null = null;
  try {
    memory = await openWholeMemory({ folder, driver: 'wasm', files: disk.files });
    await work(memory, outcome, failures);
    await memory.close();
  } catch (error) {
    failures.push(error);
  }
  disk.heal();
  await memory?.store.close().catch(() => {}); // the one above may have failed half-way
  for (const error of failures) {
    expect(error).toBeInstanceOf(RuvLLMError);
    expect(['io', 'disk_full'], String(error)).toContain((error as RuvLLMError).code);
  }
  await expectKept(folder, outcome, disk.hits.has('index'));
  rmSync(folder, { recursive: true });
  return { disk, failures };
}

let counts: ReadonlyMap<string, number>;

test('the calls that are counted are of every kind of file', async () => {
  const { disk: watched, failures } = await runWith(0, 'I/O error', 'once');
  expect(failures).toEqual([]);
  ({ counts } = watched);
  console.log(`calls: ${JSON.stringify(Object.fromEntries(counts))}`);
  for (const kind of ['database writeSync', 'database fsyncSync', 'index writeSync', 'index fdatasyncSync', 'index readSync', 'archive writevSync', 'archive renameSync', 'archive readSync', 'keys writevSync', 'keys linkSync', 'keys readSync']) expect([...counts.keys()]).toContain(kind); // prettier-ignore
});

test.each<[Fault, Persistence]>([
  ['I/O error', 'once'],
  ['I/O error', 'from'],
  ['short write', 'once'],
  ['short write', 'from'],
  ['full disk', 'once'],
  ['full disk', 'from'],
])(
  '[MS25] %s (%s) at one call of all: nothing acknowledged is lost, it opens again, the log holds',
  async (fault, persistence) => {
    counts ??= (await runWith(0, 'I/O error', 'once')).disk.counts;
    const numCalls = countConcerned(fault, counts);
    const seed = Date.now() % 100_000;
    const calls = chooseCalls(numCalls, seed);
    let numFelt = 0;
    for (const n of calls) {
      try {
        if ((await runWith(n, fault, persistence)).failures.length > 0) numFelt++;
      } catch (error) {
        throw new Error(`call ${n} of ${numCalls}: ${(error as Error).message}`, { cause: error });
      }
    }
    console.log(
      `${fault}, ${persistence}, seed ${seed}: ${calls.length} of ${numCalls} calls, felt in ${numFelt} runs`,
    );
    expect(calls.length).toBeGreaterThan(0);
  },
  3_600_000,
);
