import { execFileSync } from 'node:child_process';
import * as nodeFiles from 'node:fs';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SpillSpace, SpillStore } from '../../../kv-cache/types.ts';
import type { Files } from '../sealing/atomic-files.ts';
import { openSpillFolder } from './spill-folder.ts';

let root: string;
let numFolders = 0;
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-spill-'))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const masterKey = new Uint8Array(32).fill(7);
const newFolder = (): string => join(root, `folder-${numFolders++}`);
const NAMESPACE = { tenant: 'tenant', modelHash: 'model', adapterHash: null, policy: 'f16' };
const pageOf = (seed: number, length = 1000): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (seed * 31 + i) & 0xff);
const keyOf = (space: SpillSpace, seed: number): string => space.childKey(space.rootKey, [seed]);
const namesIn = (folder: string, end: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(end));

const failure = (code: string): Error => Object.assign(new Error(`${code}: made up`), { code });

interface Case {
  readonly folder: string;
  readonly store: SpillStore;
  readonly space: SpillSpace;
  readonly warnings: string[];
}

/** A store with three pages in it, on files of which `faults` are replaced. */
function openWith(faults: Partial<Files>): Case {
  const folder = newFolder();
  const before = openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey }).open(NAMESPACE);
  for (let i = 0; i < 3; i++) expect(before.write(keyOf(before, i), 'float', pageOf(i))).toBe(true);
  const warnings: string[] = [];
  const store = openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey, warn: (text) => warnings.push(text) }, { ...nodeFiles, ...faults }); // prettier-ignore
  return { folder, store, space: store.open(NAMESPACE), warnings };
}
const numPresent = (space: SpillSpace): number => [0, 1, 2, 3].filter((seed) => space.has(keyOf(space, seed))).length;

describe('writing', () => {
  test('[SP6] a full disk costs old pages once; when that helps, the page is kept', () => {
    let numLeft = 1;
    const { store, space, folder } = openWith({
      writevSync(handle, parts) {
        if (numLeft-- > 0) throw failure('ENOSPC');
        return nodeFiles.writevSync(handle, parts);
      },
    });
    expect(space.write(keyOf(space, 3), 'float', pageOf(3))).toBe(true);
    expect(space.read(keyOf(space, 3))?.bytes).toEqual(Buffer.from(pageOf(3)));
    expect(numPresent(space)).toBe(2); // room for twice the page was given up
    expect(store.stats()).toMatchObject({ numEvictions: 2, numFailedWrites: 0, numWrites: 1, lastFailure: null });
    expect(namesIn(folder, '.tmp')).toEqual([]);
  });

  test('[SP9] a folder that another process removes while it is empty is made again', () => {
    let numLeft = 3;
    const { store, space } = openWith({
      openSync(path, flags, mode) {
        const isNew = flags === 'wx' && String(path).includes('.page');
        if (isNew && numLeft-- > 0) throw failure('ENOENT');
        return nodeFiles.openSync(path, flags, mode);
      },
    });
    expect(space.write(keyOf(space, 3), 'float', pageOf(3))).toBe(true);
    expect(numLeft).toBeLessThan(0);
    expect(store.stats()).toMatchObject({ numFailedWrites: 0, numWrites: 1, lastFailure: null });
  });

  test.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO'])(
    '[SP6] %s in the middle of a page: false, told, nothing left, and the next write works',
    (code) => {
      let isBroken = true;
      const { store, space, folder, warnings } = openWith({
        writevSync(handle, parts) {
          if (!isBroken) return nodeFiles.writevSync(handle, parts);
          const [first] = parts as Uint8Array[];
          nodeFiles.writeSync(handle, first!); // the header gets through
          throw failure(code);
        },
      });
      for (let i = 0; i < 2; i++) expect(space.write(keyOf(space, 3), 'float', pageOf(3))).toBe(false);
      expect(space.has(keyOf(space, 3))).toBe(false);
      expect(namesIn(folder, '.tmp')).toEqual([]);
      expect(store.stats()).toMatchObject({ numFailedWrites: 2, numWrites: 0, lastFailure: `writing a page: ${code}` });
      expect(warnings).toEqual([`writing a page: ${code}`]);
      isBroken = false;
      expect(space.write(keyOf(space, 3), 'float', pageOf(3))).toBe(true);
      expect(space.read(keyOf(space, 3))?.bytes).toEqual(Buffer.from(pageOf(3)));
    },
  );

  test.each(['openSync', 'renameSync', 'closeSync'] as const)('[SP6] %s that fails changes nothing', (name) => {
    let isBroken = false;
    const { store, space, folder } = openWith({
      [name]: (...args: unknown[]) => {
        if (name === 'closeSync') (nodeFiles.closeSync as (...args: unknown[]) => void)(...args);
        if (isBroken) throw failure('EACCES');
        return name === 'closeSync' ? undefined : (nodeFiles[name] as (...args: unknown[]) => unknown)(...args);
      },
    });
    isBroken = true;
    expect(space.write(keyOf(space, 0), 'float', pageOf(9))).toBe(false);
    isBroken = false;
    expect(namesIn(folder, '.tmp')).toEqual([]);
    expect(store.stats()).toMatchObject({ numPages: 3, numFailedWrites: 1, lastFailure: 'writing a page: EACCES' });
    expect(space.read(keyOf(space, 0))?.bytes).toEqual(Buffer.from(pageOf(0)));
  });

  test('[SP6] a disk that takes a few bytes at a time gets the whole page', () => {
    let step = 0;
    const { space } = openWith({
      writevSync(handle, parts) {
        const [first] = parts as Uint8Array[];
        return nodeFiles.writeSync(handle, first!.subarray(0, 1 + (step++ % 97)));
      },
    });
    expect(space.write(keyOf(space, 3), 'packed', pageOf(3))).toBe(true);
    expect(space.read(keyOf(space, 3))).toEqual({ tier: 'packed', bytes: Buffer.from(pageOf(3)) });
  });

  test('[SP6] pages that cannot be dropped: the limit holds, the write is refused', () => {
    const { folder } = openWith({});
    const rmSync: Files['rmSync'] = () => {
      throw failure('EACCES');
    };
    const store = openSpillFolder({ folder, limitBytes: 3 * 1040, masterKey }, { ...nodeFiles, rmSync });
    const space = store.open(NAMESPACE);
    expect(space.write(keyOf(space, 3), 'float', pageOf(3))).toBe(false);
    expect(namesIn(folder, '.page')).toHaveLength(3);
    expect(store.stats()).toMatchObject({
      numFailedWrites: 1,
      lastFailure: 'dropping the longest unused page: EACCES',
    });
  });

  test('[SP6] a disk that is really full', ({ skip }) => {
    const folder = newFolder();
    mkdirSync(folder);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'ignore' });
    } catch {
      console.log('no small disk can be mounted here (root is needed): a really full disk is not tested');
      skip();
    }
    try {
      const store = openSpillFolder({ folder, limitBytes: 2 ** 30, masterKey });
      const space = store.open(NAMESPACE);
      const sizeBytes = 100_000;
      for (let i = 0; i < 30; i++) expect(space.write(keyOf(space, i), 'float', pageOf(i, sizeBytes))).toBe(true);
      const known = Array.from({ length: 30 }, (_, i) => i).filter((i) => space.has(keyOf(space, i)));
      expect(known.at(-1)).toBe(29);
      expect(known.length).toBeGreaterThan(5);
      for (const i of known) expect(Buffer.compare(space.read(keyOf(space, i))!.bytes, pageOf(i, sizeBytes))).toBe(0);
      // Somebody else's file leaves no room even when all pages go.
      expect(() => writeFileSync(join(folder, 'keys', 'large'), new Uint8Array(2 ** 20))).toThrow('ENOSPC');
      expect(space.write(keyOf(space, 99), 'float', pageOf(1, 2 ** 20))).toBe(false);
      expect(store.stats()).toMatchObject({ numFailedWrites: 1, lastFailure: 'writing a page: ENOSPC' });
      expect(namesIn(folder, '.tmp')).toEqual([]);
      rmSync(join(folder, 'keys', 'large'));
      expect(space.write(keyOf(space, 99), 'float', pageOf(1, sizeBytes))).toBe(true);
    } finally {
      execFileSync('umount', [folder]);
    }
  });
});

describe('reading and opening', () => {
  test.each([
    ['openSync', 'EACCES'],
    ['readSync', 'EIO'],
    ['fstatSync', 'EIO'],
  ] as const)('[SP6] %s that fails with %s is a miss, and the page is not looked for again', (name, code) => {
    let isBroken = false;
    const { store, space, folder } = openWith({
      [name]: (...args: unknown[]) => {
        if (isBroken) throw failure(code);
        return (nodeFiles[name] as (...args: unknown[]) => unknown)(...args);
      },
    });
    isBroken = true;
    expect(space.read(keyOf(space, 0))).toBeNull();
    isBroken = false;
    expect(space.has(keyOf(space, 0))).toBe(false);
    expect(store.stats()).toMatchObject({ numCorrupt: 0, numPages: 3, lastFailure: `reading a page: ${code}` });
    expect(namesIn(folder, '.page')).toHaveLength(3); // it may be fine for the next process
    expect(space.write(keyOf(space, 0), 'float', pageOf(0))).toBe(true);
    expect(space.read(keyOf(space, 0))?.bytes).toEqual(Buffer.from(pageOf(0)));
  });

  test('[SP6] a time of use that cannot be kept does not matter', () => {
    const futimesSync = (): never => {
      throw failure('EROFS');
    };
    const { store, space } = openWith({ futimesSync });
    expect(space.read(keyOf(space, 0))?.bytes).toEqual(Buffer.from(pageOf(0)));
    expect(store.stats().lastFailure).toBeNull();
  });

  test('[SP3] a damaged page that cannot be deleted is not used either', () => {
    const { store, space, folder } = openWith({
      rmSync: () => {
        throw failure('EACCES');
      },
    });
    const [name] = namesIn(folder, `${keyOf(space, 0)}.page`);
    writeFileSync(join(folder, name!), new Uint8Array(1040));
    expect(space.read(keyOf(space, 0))).toBeNull();
    expect(space.has(keyOf(space, 0))).toBe(false);
    expect(store.stats()).toMatchObject({ numCorrupt: 1, lastFailure: 'dropping a damaged page: EACCES' });
  });

  test('[SP6] a folder that cannot be made is a store that keeps nothing', () => {
    const folder = newFolder();
    const mkdirSync: Files['mkdirSync'] = () => {
      throw failure('EROFS');
    };
    const store = openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey }, { ...nodeFiles, mkdirSync });
    const space = store.open(NAMESPACE);
    expect(space.write(keyOf(space, 0), 'float', pageOf(0))).toBe(false);
    expect(store.stats().ignored).toEqual([`${folder} cannot be used: EROFS`]);
    expect(existsSync(folder)).toBe(false);
  });

  test('[SP6] a tenant whose key cannot be made or opened has no pages; others do', () => {
    const { store, folder } = openWith({
      linkSync: () => {
        throw failure('ENOSPC');
      },
    });
    const other = store.open({ ...NAMESPACE, tenant: 'new' });
    expect(other.write(keyOf(other, 0), 'float', pageOf(0))).toBe(false);
    expect(store.stats().ignored).toEqual([expect.stringMatching(/^writing the key file .*\.key: ENOSPC$/)]);
    const [key] = namesIn(folder, '.key');
    writeFileSync(join(folder, key!), 'damaged');
    const later = openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey });
    expect(numPresent(later.open(NAMESPACE))).toBe(0);
    expect(later.stats()).toMatchObject({
      numPages: 3,
      ignored: [expect.stringContaining('cannot be decrypted with this master key')],
    });
  });

  test('[SP8] what a killed process left is removed at opening; what is being written stays', () => {
    const { folder } = openWith({});
    const ended = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }).trim();
    const [page] = namesIn(folder, '.page');
    const leave = (place: string, owner: string | number, ageMs: number): string => {
      const name = `${place}.${owner}-0123456789abcdef00000000.tmp`;
      writeFileSync(join(folder, name), 'part of a page');
      const seconds = (Date.now() - ageMs) / 1000;
      utimesSync(join(folder, name), seconds, seconds);
      return name;
    };
    for (const place of [page!, 'spill.json', 'keys/0123.key']) {
      leave(place, ended, 0);
      leave(place, process.ppid, 61_000); // the number of the killed one was given to another
      leave(place, process.pid, process.uptime() * 1000 + 1000); // or to us
    }
    const kept = [leave(page!, process.ppid, 0), leave(page!, process.pid, 0)];
    openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey });
    expect(namesIn(folder, '.tmp').sort()).toEqual(kept.sort());
  });
});

test('[SP6] whatever fails, nothing is thrown, and a page is what was written or nothing', () => {
  const CODES = ['ENOSPC', 'EACCES', 'EIO', 'ENOENT', 'EMFILE', 'EROFS', 'EEXIST'];
  const operation = fc.record({ kind: fc.constantFrom('write', 'read', 'has', 'reopen'), seed: fc.nat(7) });
  const seen = { numFaults: 0, numPages: 0 };
  fc.assert(
    fc.property(
      fc.array(operation, { minLength: 20, maxLength: 60 }),
      fc.infiniteStream(fc.noBias(fc.nat(999))),
      (operations, chances) => {
        let isQuiet = true; // the folder is there and ours, or most runs would end with that
        const files = Object.fromEntries(
          Object.entries(nodeFiles).map(([name, value]) => [
            name,
            typeof value !== 'function' || !name.endsWith('Sync') || name === 'closeSync' || name === 'existsSync'
              ? value
              : (...args: unknown[]) => {
                  const chance = isQuiet ? 999 : (chances.next().value as number);
                  if (chance < 35) {
                    seen.numFaults++;
                    throw failure(CODES[chance % CODES.length]!);
                  }
                  return (value as (...args: unknown[]) => unknown)(...args);
                },
          ]),
        ) as unknown as Files;
        const folder = newFolder();
        const open = (): SpillSpace => openSpillFolder({ folder, limitBytes: 5000, masterKey }, files).open(NAMESPACE);
        let space = open();
        isQuiet = false;
        for (const { kind, seed } of operations) {
          const key = keyOf(space, seed);
          if (kind === 'write') space.write(key, 'float', pageOf(seed));
          else if (kind === 'has') space.has(key);
          else if (kind === 'reopen') space = open();
          else {
            const page = space.read(key);
            expect(space.has(key)).toBe(page !== null);
            if (page === null) continue;
            expect(Buffer.compare(page.bytes, pageOf(seed))).toBe(0);
            seen.numPages++;
          }
        }
        isQuiet = true;
        const last = openSpillFolder({ folder, limitBytes: 5000, masterKey }, files);
        space = last.open(NAMESPACE);
        for (let seed = 0; seed < 8; seed++) {
          if (!space.has(keyOf(space, seed))) continue;
          expect(Buffer.compare(space.read(keyOf(space, seed))!.bytes, pageOf(seed))).toBe(0);
        }
        expect(last.stats()).toMatchObject({ numCorrupt: 0, ignored: [] });
        expect(last.stats().sizeBytes).toBeLessThanOrEqual(5000);
      },
    ),
    { numRuns: 100, seed: 11 },
  );
  expect(seen.numFaults).toBeGreaterThan(100);
  expect(seen.numPages).toBeGreaterThan(20);
});
