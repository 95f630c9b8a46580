import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import * as nodeFiles from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { errnoOf } from '../files/file-errors.ts';
import { createIoSlots } from './io-slots.ts';
import type { ObjectEntry, ObjectStore } from './object-store.ts';

/** `node:fs/promises`, or a test's replacement. */
export type AsyncFiles = Pick<typeof nodeFiles, 'open' | 'mkdir' | 'rename' | 'rm' | 'stat' | 'readdir'>;

/** Of the four threads that Node.js has for files. */
const NUM_SLOTS = 2;
/** The nodes may run as different users of one group; the contents are sealed. */
const FILE_MODE = 0o660;
const FOLDER_MODE = 0o770;
const TEMPORARY = '.tmp';
/** Far more than a write takes: an older temporary file belongs to a process that was killed. */
const ABANDONED_MS = 10 * 60_000;

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '');

/** Objects as files of a folder, which may be a mounted network folder. */
export function createFolderObjects(folder: string, files: AsyncFiles = nodeFiles): ObjectStore {
  const slots = createIoSlots(NUM_SLOTS);
  const pathOf = (name: string): string => join(folder, ...name.split('/'));

  async function openNew(path: string): Promise<nodeFiles.FileHandle> {
    try {
      return await files.open(path, 'wx', FILE_MODE);
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    await files.mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
    return files.open(path, 'wx', FILE_MODE);
  }

  /** Under another name until it is whole: readers and a kill at any moment leave no partial object. */
  async function write(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${path}.${randomBytes(8).toString('hex')}${TEMPORARY}`;
    try {
      const file = await openNew(temporary);
      try {
        await file.writeFile(bytes);
      } finally {
        await file.close();
      }
      await files.rename(temporary, path);
    } catch (error) {
      await files.rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
  }

  async function read(path: string, maxBytes: number): Promise<Uint8Array | null> {
    let file: nodeFiles.FileHandle;
    try {
      // A pipe in the place of a page would block its reader.
      file = await files.open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
    try {
      const stat = await file.stat();
      if (!stat.isFile() || stat.size > maxBytes) return new Uint8Array(0); // cannot be a page: it fails its check
      return await file.readFile();
    } finally {
      await file.close();
    }
  }

  async function list(prefix: string): Promise<ObjectEntry[]> {
    const entries: ObjectEntry[] = [];
    const below = pathOf(prefix);
    let names: string[];
    try {
      names = await files.readdir(below, { recursive: true });
    } catch (error) {
      if (isMissing(error)) return entries;
      throw error;
    }
    for (const name of names) {
      const path = join(below, name);
      const stat = await files.stat(path).catch(() => null);
      if (stat === null || !stat.isFile()) continue;
      if (!name.endsWith(TEMPORARY)) {
        entries.push({ name: prefix + name.replaceAll(sep, '/'), sizeBytes: stat.size, writtenMs: stat.mtimeMs });
      } else if (stat.mtimeMs < Date.now() - ABANDONED_MS) await files.rm(path, { force: true }).catch(() => {});
    }
    return entries;
  }

  return {
    get: (name, maxBytes, signal) => slots.run(signal, () => read(pathOf(name), maxBytes)),
    has: (name, signal) =>
      slots.run(signal, () =>
        files.stat(pathOf(name)).then(
          (stat) => stat.isFile(),
          (error: unknown) => {
            if (isMissing(error)) return false;
            throw error;
          },
        ),
      ),
    put: (name, bytes, signal) => slots.run(signal, () => write(pathOf(name), bytes)),
    delete: (name, signal) => slots.run(signal, () => files.rm(pathOf(name), { force: true })),
    list: (prefix, signal) => slots.run(signal, () => list(prefix)),
  };
}
