import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OVERHEAD_BYTES } from '../sealing/sealed-file.ts';
import {
  newFolder,
  openAt,
  NAMESPACE,
  FILE_BYTES,
  pageOf,
  tokensOf,
  writeChain,
  filesIn,
  pathOf,
} from './spill-setup.contract.ts';

describe('limit', () => {
  test('[SP5] the longest unused page goes first, and a read is a use', () => {
    const folder = newFolder();
    const store = openAt(folder, { limitBytes: 3 * FILE_BYTES });
    const space = store.open(NAMESPACE);
    const keys = writeChain(space, 3);
    space.read(keys[0]!);
    const fourth = space.childKey(keys[2]!, tokensOf(3));
    expect(space.write(fourth, 'float', pageOf(3))).toBe(true);
    expect([...keys, fourth].map((key) => space.has(key))).toEqual([true, false, true, true]);
    expect(filesIn(folder).filter((path) => path.endsWith('.page'))).toHaveLength(3);
    expect(store.stats()).toMatchObject({ numPages: 3, sizeBytes: 3 * FILE_BYTES, numEvictions: 1 });
  });

  test('[SP5] the order survives opening again, over all tenants and models; a smaller limit is kept at once', () => {
    const folder = newFolder();
    const store = openAt(folder);
    const spaces = [NAMESPACE, { ...NAMESPACE, tenant: 'other' }, { ...NAMESPACE, modelHash: 'model-2' }].map((it) =>
      store.open(it),
    );
    const keys = spaces.map((space) => writeChain(space, 1)[0]!);
    const set = (index: number, seconds: number): void => utimesSync(pathOf(folder, keys[index]!), seconds, seconds);
    set(0, 3000);
    set(1, 1000);
    set(2, 2000);
    const present = (): boolean[] => keys.map((key) => pathOf(folder, key) !== undefined);
    openAt(folder, { limitBytes: 2 * FILE_BYTES });
    expect(present()).toEqual([true, false, true]);
    // A read moves the time of the file, so the next process knows of it.
    openAt(folder)
      .open({ ...NAMESPACE, modelHash: 'model-2' })
      .read(keys[2]!);
    openAt(folder, { limitBytes: FILE_BYTES });
    expect(present()).toEqual([false, false, true]);
  });

  test('[SP5] tenants whose pages are all gone leave no folders for the next scan to look through', () => {
    const folder = newFolder();
    const store = openAt(folder, { limitBytes: 2 * FILE_BYTES });
    for (let i = 0; i < 20; i++) writeChain(store.open({ ...NAMESPACE, tenant: `tenant ${i}` }), 1);
    expect(readdirSync(join(folder, 'v1'))).toHaveLength(2);
    expect(store.stats()).toMatchObject({ numPages: 2, numEvictions: 18, numFailedWrites: 0 });
  });

  test('[SP5] a page larger than the limit is refused and costs no other', () => {
    const store = openAt(newFolder(), { limitBytes: 2 * FILE_BYTES });
    const space = store.open(NAMESPACE);
    const keys = writeChain(space, 2);
    const large = space.childKey(keys[1]!, [1]);
    expect(space.write(large, 'float', pageOf(1, 2 * FILE_BYTES))).toBe(false);
    expect([...keys, large].map((key) => space.has(key))).toEqual([true, true, false]);
    const needed = 2 * FILE_BYTES + OVERHEAD_BYTES;
    expect(store.stats()).toMatchObject({
      numFailedWrites: 1,
      lastFailure: `a page takes ${needed} bytes, at most ${2 * FILE_BYTES} are allowed`,
    });
    expect(openAt(newFolder(), { limitBytes: 0 }).open(NAMESPACE).write(large, 'float', new Uint8Array(0))).toBe(false);
  });

  test('[SP5] a page that replaces another counts once', () => {
    const store = openAt(newFolder(), { limitBytes: 2 * FILE_BYTES });
    const space = store.open(NAMESPACE);
    const keys = writeChain(space, 2);
    expect(space.write(keys[0]!, 'float', pageOf(5))).toBe(true);
    expect(keys.map((key) => space.has(key))).toEqual([true, true]);
    expect(store.stats()).toMatchObject({ numEvictions: 0, sizeBytes: 2 * FILE_BYTES });
  });
});
