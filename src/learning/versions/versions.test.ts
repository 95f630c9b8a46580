import { beforeEach, describe, expect, test } from 'vitest';
import {
  recordsOf,
  createTestServices,
  createTestStore,
  type TestServices,
  type TestStore,
} from '../../memory/test-store.contract.ts';
import { createFloatBlobs, type FloatBlobs } from './blobs.ts';
import { createVersionLog, type NewVersion, type VersionLog } from './version-log.ts';

/** `toEqual` takes seconds for as many. */
const isSame = (a: Float32Array, b: Float32Array): boolean =>
  Buffer.compare(Buffer.from(a.buffer), Buffer.from(b.buffer)) === 0;

let services: TestServices;
let store: TestStore;
let blobs: FloatBlobs;
let log: VersionLog;

beforeEach(() => {
  services = createTestServices();
  store = createTestStore(services);
  blobs = createFloatBlobs(store, services);
  log = createVersionLog(store, services);
});

describe('blobs (LV1)', () => {
  const values = Float32Array.from({ length: 900_000 }, (_, i) => Math.fround(Math.sin(i)));

  test('are read as written and stored once', async () => {
    const hash = await blobs.put('acme', values);
    expect(await blobs.put('acme', values.slice())).toBe(hash);
    expect(await recordsOf(store)).toHaveLength(4); // three parts and the head
    expect(isSame(await blobs.get('acme', hash), values)).toBe(true);
    expect(await blobs.get('acme', await blobs.put('acme', new Float32Array(0)))).toHaveLength(0);
  });

  test('of other tenants, deleted and incomplete ones are not found', async () => {
    const hash = await blobs.put('acme', values);
    await expect(blobs.get('other', hash)).rejects.toMatchObject({ code: 'not_found' });
    await blobs.delete('acme', hash);
    expect(await recordsOf(store)).toEqual([]);
    let numPuts = 0;
    store.onCall = (operation) => {
      if (operation === 'put' && ++numPuts === 3) throw new Error('killed');
    };
    await expect(blobs.put('acme', values)).rejects.toThrow('killed');
    await expect(blobs.get('acme', hash)).rejects.toMatchObject({ code: 'not_found' });
    await blobs.put('acme', values);
    expect(isSame(await blobs.get('acme', hash), values)).toBe(true);
  });

  test('with a missing or changed part are refused', async () => {
    const hash = await blobs.put('acme', values);
    const part = (await recordsOf(store)).find(({ body }) => JSON.stringify(body).startsWith('{"$f32"'))!;
    const { version: _version, createdMs: _created, updatedMs: _updated, ...kept } = part;
    await store.put([{ ...kept, body: { $f32: 'AAAAAA==' } }]);
    await expect(blobs.get('acme', hash)).rejects.toMatchObject({ code: 'io' });
    await store.delete('acme', [part.id]);
    await expect(blobs.get('acme', hash)).rejects.toMatchObject({ code: 'io' });
  });
});

const fresh = (changes: Partial<NewVersion> = {}): NewVersion => ({
  line: 'adapter/small',
  loop: 'background',
  isAccepted: true,
  reason: 'the held-out loss falls',
  metrics: { held_out_mean: -0.2 },
  blobs: { weights: 'abc' },
  contents: { rank: 4 },
  learnedFrom: ['r1'],
  ...changes,
});

describe('versions (LV2)', () => {
  test('an accepted version is active; a refused one is recorded and not active', async () => {
    expect(await log.active('acme', 'adapter/small')).toBeNull();
    const first = await log.add('acme', fresh());
    expect(first).toMatchObject({ version: 1, parent: 0, createdMs: services.timeMs });
    await log.add('acme', fresh({ isAccepted: false, reason: 'the loss elsewhere rises' }));
    expect(await log.active('acme', 'adapter/small')).toEqual(first);
    const third = await log.add('acme', fresh());
    expect(third).toMatchObject({ version: 3, parent: 1 });
    expect(await log.active('acme', 'adapter/small')).toEqual(third);
    expect(
      (await log.history('acme', 'adapter/small')).map(({ version, isAccepted }) => [version, isAccepted]),
    ).toEqual([
      [3, true],
      [2, false],
      [1, true],
    ]);
  });

  test('allow a rollback to an accepted version or to none, never to a refused one', async () => {
    await log.add('acme', fresh());
    await log.add('acme', fresh());
    await log.add('acme', fresh({ isAccepted: false }));
    expect(await log.rollback('acme', 'adapter/small', 1)).toMatchObject({ version: 1 });
    expect(await log.active('acme', 'adapter/small')).toMatchObject({ version: 1 });
    await expect(log.rollback('acme', 'adapter/small', 3)).rejects.toMatchObject({ code: 'conflict' });
    await expect(log.rollback('acme', 'adapter/small', 9)).rejects.toMatchObject({ code: 'not_found' });
    expect(await log.rollback('acme', 'adapter/small', 0)).toBeNull();
    expect(await log.active('acme', 'adapter/small')).toBeNull();
    expect(await log.add('acme', fresh())).toMatchObject({ version: 4, parent: 0 });
  });

  test('history has the requested length, newest first', async () => {
    for (let i = 0; i < 3; i++) await log.add('acme', fresh());
    const numbers = async (limit?: number) =>
      (await log.history('acme', 'adapter/small', limit)).map(({ version }) => version);
    expect([await numbers(1), await numbers(2), await numbers()]).toEqual([[3], [3, 2], [3, 2, 1]]);
  });

  test('concurrent versions get distinct numbers', async () => {
    const both = await Promise.all([log.add('acme', fresh()), log.add('acme', fresh())]);
    expect(both.map(({ version }) => version).sort()).toEqual([1, 2]);
  });

  test('a failed write leaves the old version active (LV3)', async () => {
    await log.add('acme', fresh());
    store.onCall = (operation) => {
      if (operation === 'put') throw new Error('disk full');
    };
    await expect(log.add('acme', fresh())).rejects.toThrow('disk full');
    store.onCall = () => {};
    expect(await log.active('acme', 'adapter/small')).toMatchObject({ version: 1 });
    expect(await log.history('acme', 'adapter/small')).toHaveLength(1);
  });

  test('lines and tenants are separate', async () => {
    await log.add('acme', fresh());
    await log.add('acme', fresh({ line: 'router/main' }));
    await log.add('other', fresh());
    expect(await log.lines('acme')).toEqual(['adapter/small', 'router/main']);
    expect(await log.history('acme', 'router/main')).toHaveLength(1);
    await expect(log.add('acme', fresh({ metrics: { loss: Number.NaN } }))).rejects.toMatchObject({
      code: 'invalid_option',
    });
  });
});
