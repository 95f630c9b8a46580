import * as nodeFiles from 'node:fs';
import { cpSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import { auditInput } from '../../../memory/audit/harness.contract.ts';
import { expectNothingPlain } from './canary.contract.ts';
import { openWholeMemory, seededVector, type WholeMemory } from './crash-memory.contract.ts';
import { watchDisk } from './faulty-files.contract.ts';
import { contentsOf, DRIVERS, hashesOf, masterKey, newFolder } from './memory-setup.contract.ts';

const CANARY = 'canary-7319';
/** Of length 1 already: an index that is not sealed would hold just these bytes. */
const vector = Float32Array.of(0.5, 0.5, 0.5, 0.5, 0, 0);
const PLANTED = [CANARY, new Uint8Array(vector.buffer), masterKey.key];
const NUM_RECORDS = 60;

async function fill(folder: string, driver: 'node' | 'wasm'): Promise<WholeMemory> {
  const memory = await openWholeMemory({ folder, driver });
  const { store, audit } = memory;
  await store.put(
    Array.from({ length: NUM_RECORDS }, (_, i) =>
      recordOf(i, {
        tenant: CANARY,
        fields: { source: `${CANARY} ${i % 5}` },
        body: { [CANARY]: [CANARY] },
        vector: i === 0 ? vector : seededVector(i),
        space: CANARY,
      }),
    ),
  );
  await store.putEdges(CANARY, [{ from: idOf(0), to: idOf(1), relation: CANARY, weight: 1, confidence: 1 }]);
  const near = await store.nearest(CANARY, { kinds: ['fact'], vector, space: CANARY, k: 1 });
  expect(near[0]!.record).toMatchObject({ id: idOf(0), body: { [CANARY]: [CANARY] } });
  for (let i = 0; i < 40; i++) {
    audit.enqueue(CANARY, auditInput({ query: `${CANARY} ${i}`, response: CANARY, sessionId: CANARY, model: CANARY, queryEmbedding: vector, space: CANARY })); // prettier-ignore
  }
  await audit.flush();
  expect((await audit.retain(CANARY)).numSegments).toBeGreaterThan(0);
  return memory;
}

const namesIn = (folder: string, pattern: RegExp): string[] => [...contentsOf(folder).keys()].filter((name) => pattern.test(name)); // prettier-ignore

/** All of these are there when it is searched. */
const expectKinds = (folder: string, kinds: readonly RegExp[]): void => {
  for (const kind of kinds) expect([kind, namesIn(folder, kind).length > 0]).toEqual([kind, true]);
};
const KINDS = [/^memory\.db$/, /^memory\.json$/, /^keys.*\.key$/, /^archive.*\.seg$/];

test.each(DRIVERS)(
  '[MS22] nothing that was planted is in any file: rows, WAL, graphs, segments, keys (%s)',
  async (driver) => {
    // prettier-ignore
    const folder = newFolder();
    const memory = await fill(folder, driver);
    expectKinds(folder, [...KINDS, /^memory\.db-wal$/, /^owner\.lock$/]);
    expect(expectNothingPlain(folder, PLANTED)).toBeGreaterThan(50_000);
    await memory.close();
    expectKinds(folder, [...KINDS, /^vectors.*\.vectors$/]);
    expect(statSync(join(folder, namesIn(folder, /\.vectors$/)[0]!)).size).toBeGreaterThan(1 << 20);
    expect(expectNothingPlain(folder, PLANTED)).toBeGreaterThan(1 << 20);
    const loaded: boolean[] = [];
    const again = await openWholeMemory({ folder, driver, onLoad: (hasGraph) => void loaded.push(hasGraph) });
    await again.store.nearest(CANARY, { kinds: ['fact'], vector, space: CANARY, k: 1 });
    expect(loaded).toEqual([true]); // what was searched for canaries is a graph
    await again.store.delete(CANARY, [idOf(0)]);
    await again.store.eraseTenant(CANARY);
    await again.close();
    expectNothingPlain(folder, PLANTED);
  },
);

let whole: string;
beforeAll(async () => {
  whole = newFolder();
  await (await fill(whole, 'wasm')).close();
});

test.each(DRIVERS)(
  '[MS18] another key: refused before anything but the header is read, no byte and no time changed (%s)',
  async (driver) => {
    // prettier-ignore
    const folder = newFolder();
    cpSync(whole, folder, { recursive: true, preserveTimestamps: true });
    const timesOf = (): string[] => nodeFiles.readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort().map((name) => `${name} ${statSync(join(folder, name)).mtimeMs}`); // prettier-ignore
    const [bytes, times] = [hashesOf(folder), timesOf()];
    expectKinds(folder, [...KINDS, /^vectors.*\.vectors$/]);
    for (const key of [{ key: new Uint8Array(32).fill(8) }, { passphrase: 'guess' }]) {
      const disk = watchDisk(folder, 0, 'I/O error', 'once');
      try {
        const opening = openWholeMemory({ folder, driver, masterKey: key, files: disk.files });
        await expect(opening).rejects.toMatchObject({ code: 'invalid_option', data: { option: 'masterKey' } });
      } finally {
        disk.heal();
      }
      expect([...disk.counts.keys()].filter((call) => !call.startsWith('header '))).toEqual([]);
      expect([...disk.counts.keys()]).toContain('header openSync');
    }
    expect(hashesOf(folder)).toEqual(bytes);
    expect(timesOf()).toEqual(times);
  },
);
