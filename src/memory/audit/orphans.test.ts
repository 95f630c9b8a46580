import { describe, expect, test } from 'vitest';
import { readManifests } from './archive.ts';
import { createHarness, createTestArchive, numbered, TENANT, writeAll, type Harness } from './harness.contract.ts';
import { removeOrphans } from './orphans.ts';

const DAY_MS = 86_400_000;

interface Scene extends Harness {
  readonly log: Awaited<ReturnType<Harness['open']>>;
  readonly files: Map<string, Uint8Array>;
  /** Old entries, and one that archives them and is killed before it names its segment. */
  archiveAndDie(): Promise<void>;
  /** With all that is there now as what was left behind. */
  sweep(tenants?: readonly string[], isSound?: () => boolean): Promise<number>;
}

async function createScene(retention: object = {}): Promise<Scene> {
  const harness = createHarness();
  const archive = createTestArchive();
  const log = await harness.open({ archive, retention });
  await writeAll(log, numbered(40));
  harness.services.timeMs += 8 * DAY_MS;
  return {
    ...harness,
    log,
    files: archive.files,
    async archiveAndDie() {
      const write = async (name: string, bytes: Uint8Array): Promise<void> => {
        archive.files.set(name, bytes);
        throw new Error('killed');
      };
      const dying = await harness.open({ archive: { ...archive, write }, retention, log: { leaseMs: 60_000 } });
      await expect(dying.retain(TENANT)).rejects.toThrow('killed');
    },
    sweep(tenants = [TENANT], isSound = () => true) {
      const names = [...archive.files.keys()];
      const context = { ...harness, archive: { ...archive, leftBehind: async () => names } };
      return removeOrphans(context, tenants, isSound);
    },
  };
}

describe('[WL15] segments that nothing names', () => {
  test('whose entries are still in the store are removed, and can be archived after that', async () => {
    const { log, files, archiveAndDie, sweep } = await createScene();
    await archiveAndDie();
    await archiveAndDie();
    expect(files.size).toBe(2);
    expect(await sweep()).toBe(2);
    expect(files.size).toBe(0);
    expect(await log.verify(TENANT)).toMatchObject({ brokenAt: null, numChecked: 40 });
    expect(await log.retain(TENANT)).toMatchObject({ numMoved: 40, numSegments: 1 });
    expect(await sweep()).toBe(0);
    expect(await log.verify(TENANT)).toMatchObject({ brokenAt: null, numArchived: 40 });
  });

  test('whose entries are in another segment, or let go, are removed', async () => {
    const { log, files, archiveAndDie, sweep, services, open } = await createScene();
    await archiveAndDie();
    const [orphan] = files.keys();
    await log.retain(TENANT);
    expect(files.size).toBe(2);
    expect(await sweep()).toBe(1);
    expect(files.has(orphan!)).toBe(false);
    expect(await log.verify(TENANT)).toMatchObject({ brokenAt: null, numArchived: 40 });
    const [[name, bytes]] = [...files] as [[string, Uint8Array]];
    services.timeMs += DAY_MS;
    const archive = { ...createTestArchive(), delete: async (file: string) => void files.delete(file) };
    await (await open({ archive, retention: { archiveMaxAgeMs: DAY_MS } })).retain(TENANT);
    expect(files.size).toBe(0);
    files.set(name, bytes);
    expect(await sweep()).toBe(1);
  });

  test('one whose manifest is lost holds the only copy, and stays', async () => {
    const { log, files, sweep, store } = await createScene();
    await log.retain(TENANT);
    const [manifest] = await readManifests(store, TENANT);
    await store.delete(TENANT, [manifest!.id]);
    expect(await sweep()).toBe(0);
    expect(files.size).toBe(1);
  });

  test('keeps segments of unknown tenants, and while the store is the fallback', async () => {
    const { files, archiveAndDie, sweep, log } = await createScene();
    await archiveAndDie();
    await writeAll(log, numbered(50), 'other');
    expect(await sweep(['other'])).toBe(0); // the same numbers, another key
    expect(await sweep([])).toBe(0);
    expect(await sweep([TENANT], () => false)).toBe(0);
    expect(files.size).toBe(1);
  });

  test('keeps segments that are newer than the opening', async () => {
    const { files, archiveAndDie, services, store } = await createScene();
    const archive = { ...createTestArchive(), files, leftBehind: async () => [] };
    await archiveAndDie();
    expect(await removeOrphans({ store, services, archive }, [TENANT])).toBe(0);
    expect(await removeOrphans({ store, services, archive: createTestArchive() }, [TENANT])).toBe(0);
    expect(files.size).toBe(1);
  });
});
