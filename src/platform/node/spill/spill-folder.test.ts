import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { SpillSpace } from '../../../kv-cache/types.ts';
import { OVERHEAD_BYTES } from '../sealing/sealed-file.ts';
import { openSpillFolder, type SpillFolderOptions } from './spill-folder.ts';
import {
  masterKey,
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

const snapshot = (folder: string) =>
  filesIn(folder).map((path) => [path, readFileSync(path, 'hex'), statSync(path).mtimeMs]);

describe('pages', () => {
  test('[SP1] a page comes back exactly, from memory of any kind, also after opening the folder again', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 3000 }),
        fc.constantFrom('float' as const, 'packed' as const),
        (bytes, tier) => {
          const folder = newFolder();
          const space = openAt(folder).open(NAMESPACE);
          const key = space.childKey(space.rootKey, tokensOf(1));
          const shared = new Uint8Array(new SharedArrayBuffer(bytes.length + 5), 5);
          shared.set(bytes);
          expect(space.has(key)).toBe(false);
          expect(space.read(key)).toBeNull();
          expect(space.write(key, tier, shared)).toBe(true);
          for (const reader of [space, openAt(folder).open(NAMESPACE)]) {
            expect(reader.has(key)).toBe(true);
            const page = reader.read(key)!;
            expect(page.tier).toBe(tier);
            expect(Buffer.compare(page.bytes, bytes)).toBe(0);
          }
        },
      ),
      { numRuns: 30, seed: 1 },
    );
  });

  test('[SP1] what was read stays as it is when the next page is read', () => {
    const space = openAt(newFolder()).open(NAMESPACE);
    const [first, second] = writeChain(space, 2);
    const page = space.read(first!)!;
    space.read(second!);
    expect(page.bytes).toEqual(Buffer.from(pageOf(0)));
  });

  test('[SP1] a page written again replaces the old one', () => {
    const folder = newFolder();
    const store = openAt(folder);
    const space = store.open(NAMESPACE);
    const [key] = writeChain(space, 1);
    expect(space.write(key!, 'packed', pageOf(9, 500))).toBe(true);
    expect(space.read(key!)).toEqual({ tier: 'packed', bytes: Buffer.from(pageOf(9, 500)) });
    expect(store.stats()).toMatchObject({ numPages: 1, sizeBytes: 500 + OVERHEAD_BYTES, numWrites: 2, numReads: 1 });
  });

  test('[SP2] a key stands for the whole namespace and all tokens from the first one on', () => {
    const store = openAt(newFolder());
    const space = store.open(NAMESPACE);
    const next = (from: string, ...tokens: number[]): string => space.childKey(from, tokens);
    const { rootKey } = space;
    const different = [
      rootKey,
      next(rootKey, 1, 2),
      next(rootKey, 2, 1),
      next(rootKey, 1),
      next(rootKey),
      next(rootKey, 1, 2, 0),
      next(rootKey, 1, 2 + 2 ** 16),
      next(rootKey, -1),
      next(next(rootKey, 1), 2),
      next(next(rootKey, 1, 2), 1, 2),
      ...[{ tenant: 'tenant-beta' }, { modelHash: 'model-2' }, { adapterHash: '' }, { policy: 'q8' }].flatMap(
        (other) => {
          const space = store.open({ ...NAMESPACE, ...other });
          return [space.rootKey, space.childKey(space.rootKey, [1, 2])];
        },
      ),
    ];
    expect(new Set(different).size).toBe(different.length);
    for (const key of different) expect(key).toMatch(/^[0-9a-f]{64}$/);
    const again = store.open({ ...NAMESPACE });
    expect(again.rootKey).toBe(rootKey);
    expect(again.childKey(rootKey, new Int32Array([1, 2]))).toBe(next(rootKey, 1, 2));
    // More tokens than a page has, and then fewer: nothing of the longer list stays behind.
    space.childKey(rootKey, new Int32Array(1000).fill(5));
    expect(next(rootKey, 1, 2)).toBe(different[1]);
  });

  test('[SP2] a key that is not one of ours is no path', () => {
    const space = openAt(newFolder()).open(NAMESPACE);
    expect(() => space.write('../../../outside', 'float', pageOf(1))).toThrow('under a key of childKey');
    expect(space.has('../../../outside')).toBe(false);
    expect(space.read('../../../outside')).toBeNull();
  });
});

describe('damage and isolation', () => {
  test.each([
    ['cut short', (path: string) => truncateSync(path, FILE_BYTES - 1)],
    ['cut to its header', (path: string) => truncateSync(path, 24)],
    ['empty', (path: string) => truncateSync(path, 0)],
    ['too long', (path: string) => writeFileSync(path, 'x', { flag: 'a' })],
    ['of a newer version', (path: string) => flip(path, 4, 3)],
    ['of the other tier', (path: string) => flip(path, 6, 1)],
    ['of a tier that is not known', (path: string) => flip(path, 6, 8)],
    ['with a flipped bit', (path: string) => flip(path, 500, 1)],
    ['with a flipped bit in its tag', (path: string) => flip(path, FILE_BYTES - 1, 128)],
  ])('[SP3] a page that is %s is dropped, counted and never used', (_, damage) => {
    const folder = newFolder();
    const store = openAt(folder);
    const space = store.open(NAMESPACE);
    const [key, other] = writeChain(space, 2);
    const path = pathOf(folder, key!);
    damage(path);
    expect(space.read(key!)).toBeNull();
    expect(space.has(key!)).toBe(false);
    expect(existsSync(path)).toBe(false);
    expect(store.stats()).toMatchObject({ numCorrupt: 1, numPages: 1, sizeBytes: FILE_BYTES, numReads: 0 });
    expect(space.read(other!)?.bytes).toEqual(Buffer.from(pageOf(1)));
    expect(space.write(key!, 'float', pageOf(0))).toBe(true);
    expect(space.read(key!)?.bytes).toEqual(Buffer.from(pageOf(0)));
  });

  test('[SP3] a page under the name of another page is not that page', () => {
    const folder = newFolder();
    const space = openAt(folder).open(NAMESPACE);
    const [first, second] = writeChain(space, 2);
    copyFileSync(pathOf(folder, first!), pathOf(folder, second!));
    expect(space.read(second!)).toBeNull();
    expect(space.read(first!)?.bytes).toEqual(Buffer.from(pageOf(0)));
  });

  test('[SP4] one tenant hits its own pages; another with the same prompt finds none, nor can it read a copied file', () => {
    const folder = newFolder();
    const store = openAt(folder);
    const [alpha, beta] = ['alpha', 'beta'].map((tenant) => store.open({ ...NAMESPACE, tenant }));
    const keyIn = (space: SpillSpace): string => space.childKey(space.rootKey, tokensOf(1));
    expect(alpha!.write(keyIn(alpha!), 'float', pageOf(1))).toBe(true);
    expect(alpha!.read(keyIn(alpha!))?.bytes).toEqual(Buffer.from(pageOf(1)));
    expect(keyIn(beta!)).not.toBe(keyIn(alpha!));
    for (const key of [keyIn(alpha!), keyIn(beta!)]) {
      expect(beta!.has(key)).toBe(false);
      expect(beta!.read(key)).toBeNull();
    }
    // The file of alpha put where beta looks: under the name beta would use, and under its own.
    for (const key of [keyIn(beta!), keyIn(alpha!)]) {
      expect(beta!.write(key, 'float', pageOf(2))).toBe(true);
      const [own] = filesIn(folder).filter(
        (path) => path.endsWith(`${keyIn(alpha!)}.page`) && !path.includes(tenantFolder(beta!)),
      );
      copyFileSync(own!, join(tenantFolder(beta!), key.slice(0, 2), `${key}.page`));
      expect(beta!.read(key)).toBeNull();
    }
    expect(store.stats().numCorrupt).toBe(2);
    expect(alpha!.read(keyIn(alpha!))?.bytes).toEqual(Buffer.from(pageOf(1)));

    function tenantFolder(space: SpillSpace): string {
      const mark = space.childKey(space.rootKey, [42]);
      if (!space.has(mark)) space.write(mark, 'float', pageOf(3));
      return dirname(dirname(pathOf(folder, mark)));
    }
  });

  test('[SP4] nothing in the folder shows the tenant, the tokens, the page or a key', () => {
    const folder = newFolder();
    const names = {
      tenant: 'visible-tenant',
      modelHash: 'visible-model',
      adapterHash: 'visible-adapter',
      policy: 'visible-policy',
    };
    const space = openAt(folder).open(names);
    const tokens = tokensOf(77);
    const key = space.childKey(space.rootKey, tokens);
    const bytes = Buffer.from('a page that is easily recognised'.repeat(30));
    space.write(key, 'float', bytes);
    const secrets = [...Object.values(names).map((name) => Buffer.from(name)), Buffer.from(tokens.buffer), bytes.subarray(0, 8), Buffer.from(masterKey)]; // prettier-ignore
    const all = Buffer.concat(filesIn(folder).flatMap((path) => [Buffer.from(path), readFileSync(path)]));
    for (const secret of secrets) expect(all.includes(secret)).toBe(false);
    for (const path of filesIn(folder)) {
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    }
    expect(filesIn(folder)).toHaveLength(3); // header, key of the tenant, page
  });
});

describe('folders', () => {
  const used = (): { folder: string; key: string } => {
    const folder = newFolder();
    return { folder, key: writeChain(openAt(folder).open(NAMESPACE), 1)[0]! };
  };
  const expectIgnored = (
    folder: string,
    key: string,
    reason: string,
    options: Partial<SpillFolderOptions> = {},
  ): void => {
    const warnings: string[] = [];
    const store = openAt(folder, { ...options, limitBytes: 1, warn: (message) => warnings.push(message) });
    const space = store.open(NAMESPACE);
    expect(store.stats().ignored).toEqual([reason]);
    expect(warnings).toEqual([reason]);
    expect(space.has(key)).toBe(false);
    expect(space.read(key)).toBeNull();
    expect(space.write(key, 'float', new Uint8Array(0))).toBe(false);
    expect(store.stats()).toMatchObject({ numPages: 0, numFailedWrites: 1, lastFailure: reason });
    expect(() => store.eraseTenant(NAMESPACE.tenant)).toThrow(`erasing a tenant: ${reason}`);
  };

  test('[SP7] a folder of another master key is left alone', () => {
    const { folder, key } = used();
    const before = snapshot(folder);
    const header = join(folder, 'spill.json');
    expectIgnored(folder, key, `${header} is encrypted with another master key`, {
      masterKey: new Uint8Array(32).fill(8),
    });
    expect(snapshot(folder)).toEqual(before);
    expect(openAt(folder).open(NAMESPACE).has(key)).toBe(true);
  });

  test.each([
    ['{"version":2,"check":"x"}', 'is of version 2, this one knows 1'],
    ['{"version":0,"check":"x"}', 'is not a RuvLLM header'],
    ['{"version":"1"}', 'is not a RuvLLM header'],
    ['null', 'is not a RuvLLM header'],
    ['{"vers', 'is not a RuvLLM header'],
    [' '.repeat(5000), 'is not a RuvLLM header'],
  ])('[SP7] a folder with the header %j is left alone', (header, reason) => {
    const { folder, key } = used();
    writeFileSync(join(folder, 'spill.json'), header);
    const before = snapshot(folder);
    expectIgnored(folder, key, `${join(folder, 'spill.json')} ${reason}`);
    expect(snapshot(folder)).toEqual(before);
  });

  test("[SP7] a file, and a folder with somebody's files, are left alone; an empty folder is taken", () => {
    const { key } = used();
    const file = newFolder();
    writeFileSync(file, 'mine');
    expectIgnored(file, key, `${file} is not a folder`);
    expect(readFileSync(file, 'utf8')).toBe('mine');
    const home = newFolder();
    mkdirSync(home);
    expect(openAt(home).stats().ignored).toEqual([]);
    rmSync(join(home, 'spill.json'));
    writeFileSync(join(home, 'letter.txt'), 'mine');
    expectIgnored(home, key, `${home} has no spill.json and is not empty`);
    expect(readdirSync(home)).toEqual(['letter.txt']);
  });

  test('[SP7] pages of another model are not found, but counted and told', () => {
    const { folder, key } = used();
    const store = openAt(folder);
    expect(store.stats().ignored).toEqual([]);
    const space = store.open({ ...NAMESPACE, modelHash: 'model-2' });
    expect(space.has(key)).toBe(false);
    expect(store.stats()).toMatchObject({ numPages: 1, sizeBytes: FILE_BYTES, ignored: ['pages of other models: 1'] });
    expect(store.open(NAMESPACE).has(key)).toBe(true);
    expect(store.stats().ignored).toEqual([]);
  });

  test('[SP9] what another store on the same folder wrote or dropped is noticed', () => {
    const folder = newFolder();
    const limitBytes = 8 * FILE_BYTES;
    const [one, two] = [openAt(folder, { limitBytes }), openAt(folder, { limitBytes })];
    const [first, second] = [one.open(NAMESPACE), two.open(NAMESPACE)];
    expect(second.rootKey).toBe(first.rootKey);
    const keys = writeChain(first, 6);
    expect(keys.some((key) => second.has(key))).toBe(false);
    const later = Array.from({ length: 6 }, (_, i) => second.childKey(second.rootKey, [i, i]));
    for (const key of later) expect(second.write(key, 'float', pageOf(1))).toBe(true);
    expect(two.stats().sizeBytes).toBeLessThanOrEqual(limitBytes);
    expect(filesIn(folder).filter((path) => path.endsWith('.page')).length).toBe(two.stats().numPages);
    // Dropped by the second, still known to the first: a miss, not a failure.
    const gone = keys.find((key) => !second.has(key))!;
    expect(first.has(gone)).toBe(true);
    expect(first.read(gone)).toBeNull();
    expect(first.has(gone)).toBe(false);
    expect(one.stats().numCorrupt).toBe(0);
  });

  test('[SP10] an erased tenant has neither key nor pages; others keep theirs', () => {
    const { folder, key } = used();
    const store = openAt(folder);
    const space = store.open(NAMESPACE);
    const other = store.open({ ...NAMESPACE, tenant: 'other' });
    const [kept] = writeChain(other, 1);
    expect(space.has(key)).toBe(true);
    const saved = newFolder();
    const path = pathOf(folder, key);
    copyFileSync(path, saved);
    store.eraseTenant(NAMESPACE.tenant);
    expect(readdirSync(join(folder, 'keys'))).toHaveLength(1);
    expect(readdirSync(join(folder, 'v1'))).toHaveLength(1);
    expect(space.has(key)).toBe(false);
    expect(space.write(key, 'float', pageOf(1))).toBe(false);
    expect(store.stats()).toMatchObject({ numPages: 1, sizeBytes: FILE_BYTES });
    expect(other.read(kept!)?.bytes).toEqual(Buffer.from(pageOf(0)));
    // A backup of the page is worth nothing without the key.
    const fresh = store.open(NAMESPACE);
    expect(fresh.rootKey).not.toBe(space.rootKey);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(saved, path);
    expect(openAt(folder).open(NAMESPACE).read(key)).toBeNull();
  });

  test('a closed store keeps and finds nothing', () => {
    const store = openAt(newFolder());
    const space = store.open(NAMESPACE);
    const [key] = writeChain(space, 1);
    store.close();
    expect([space.has(key!), space.read(key!), space.write(key!, 'float', pageOf(1))]).toEqual([false, null, false]);
    expect(store.open(NAMESPACE).has(key!)).toBe(false);
  });

  test('options are checked, and a key in the wrong form is not repeated', () => {
    const folder = newFolder();
    const secret = 'f'.repeat(64);
    const open = (options: object) => () =>
      openSpillFolder({ folder, limitBytes: 1, masterKey, ...options } as SpillFolderOptions);
    expect(open({ masterKey: secret })).toThrow(/^option "masterKey" must be 32 bytes$/);
    expect(open({ masterKey: new Uint8Array(16) })).toThrow('32 bytes');
    expect(open({ limitBytes: -1 })).toThrow('limitBytes');
    expect(open({ limitBytes: undefined })).toThrow('limitBytes');
    expect(open({ folder: '' })).toThrow('folder');
    expect(open({ sync: true })).toThrow('unknown option "sync"');
    expect(existsSync(folder)).toBe(false);
    const store = openAt(folder);
    expect(() => store.open({ ...NAMESPACE, tenant: 'x'.repeat(1025) })).toThrow('1025 bytes');
    expect(() => store.open({ ...NAMESPACE, tenant: '\ud800' })).toThrow('not valid Unicode');
  });
});

function flip(path: string, offset: number, mask: number): void {
  const bytes = readFileSync(path);
  bytes[offset]! ^= mask;
  writeFileSync(path, bytes);
}
