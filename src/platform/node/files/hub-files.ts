import { randomBytes } from 'node:crypto';
import { createReadStream, statSync, type Dirent, type Stats } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { FileKind, FileWriter, HubFiles } from '../../../hub/platform.ts';
import { errnoOf, toFileError } from './file-errors.ts';
import { syncFolder } from './file-sink.ts';
import { openFileSource } from './file-source.ts';
import { expandHome } from './paths.ts';

const READ_CHUNK_BYTES = 1 << 20;

function kindOf(entry: Dirent | Stats): FileKind {
  if (entry.isFile()) return 'file';
  if (entry.isDirectory()) return 'folder';
  return entry.isSymbolicLink() ? 'link' : 'other';
}

/** Runs a file operation; the errnos in `absorbed` give `instead` rather than an error. */
async function attempt<T>(
  doing: string,
  path: string,
  work: () => Promise<T>,
  absorbed: readonly string[] = [],
  instead?: T,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (absorbed.includes(errnoOf(error) ?? '')) return instead as T;
    throw toFileError(error, doing, path);
  }
}

const ABSENT = ['ENOENT', 'ENOTDIR'] as const;
const ABSENT_OR_LOOP = [...ABSENT, 'ELOOP'] as const;

function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
}

async function openWriter(path: string, startBytes: number): Promise<FileWriter> {
  const doing = 'cannot write';
  const handle = await attempt(doing, path, async () => {
    try {
      return await fs.open(path, 'r+');
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error;
      return await fs.open(path, 'wx+');
    }
  });
  let position = startBytes;
  try {
    await handle.truncate(startBytes);
  } catch (error) {
    await handle.close();
    throw toFileError(error, doing, path);
  }
  return {
    async write(bytes) {
      let done = 0;
      while (done < bytes.byteLength) {
        const { bytesWritten } = await attempt(doing, path, () =>
          handle.write(bytes, done, bytes.byteLength - done, position),
        );
        done += bytesWritten;
        position += bytesWritten;
      }
    },
    sync: () => attempt(doing, path, () => handle.sync()),
    close: () => attempt(doing, path, () => handle.close()),
  };
}

async function* readChunks(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: READ_CHUNK_BYTES })) yield chunk as Uint8Array;
  } catch (error) {
    throw toFileError(error, 'cannot read', path);
  }
}

async function readText(path: string, maxBytes: number): Promise<string | null> {
  // Every request looks for a saved model, and most find none: without the thread pool that takes 7 µs instead of 52.
  const open = async () => (statSync(path, { throwIfNoEntry: false }) === undefined ? null : await fs.open(path, 'r'));
  const handle = await attempt('cannot read', path, open, ABSENT, null);
  if (handle === null) return null;
  try {
    const buffer = Buffer.alloc(maxBytes + 1);
    const { bytesRead } = await handle.read(buffer, 0, maxBytes + 1, 0);
    if (bytesRead > maxBytes) throw new RuvLLMError('io', `${path}: longer than the ${maxBytes} bytes allowed`);
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    throw toFileError(error, 'cannot read', path);
  } finally {
    await handle.close();
  }
}

/** Places the new entry beside and renames it over, so that a reader sees the old or the new one, never none. */
async function link(relativeTarget: string, path: string): Promise<void> {
  const temporary = temporaryBeside(path);
  const target = join(dirname(path), relativeTarget);
  try {
    try {
      await fs.symlink(relativeTarget, temporary);
    } catch (error) {
      if (['ENOSPC', 'EDQUOT', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
      // Windows without developer mode, FAT and some network shares have no links.
      await fs.link(target, temporary).catch(() => fs.copyFile(target, temporary));
    }
    await fs.rename(temporary, path);
  } catch (error) {
    await fs.rm(temporary, { force: true });
    throw toFileError(error, 'cannot link', path);
  }
}

export const nodeHubFiles: HubFiles = {
  join,
  isFile(path) {
    try {
      return statSync(expandHome(path)).isFile();
    } catch {
      return false; // a name too long for a file, a loop of links, no permission: `stat` says which
    }
  },
  absolutePath: (path) => resolve(expandHome(path)),
  stat: (path) =>
    attempt(
      'cannot look at',
      path,
      async () => {
        const stat = await fs.stat(path);
        return { kind: kindOf(stat), sizeBytes: stat.size, modifiedMs: stat.mtimeMs };
      },
      ABSENT_OR_LOOP,
      null,
    ),
  realPath: (path) => attempt<string | null>('cannot look at', path, () => fs.realpath(path), ABSENT_OR_LOOP, null),
  async list(path) {
    const entries = await attempt('cannot list', path, () => fs.readdir(path, { withFileTypes: true }), ABSENT, []);
    return entries
      .map((entry) => ({ name: entry.name, kind: kindOf(entry) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  },
  async makeFolder(path) {
    await attempt('cannot create', path, () => fs.mkdir(path, { recursive: true }));
  },
  readText,
  async writeText(path, text) {
    const temporary = temporaryBeside(path);
    try {
      await fs.writeFile(temporary, text, { flush: true });
      await fs.rename(temporary, path);
    } catch (error) {
      await fs.rm(temporary, { force: true });
      throw toFileError(error, 'cannot write', path);
    }
  },
  createExclusive: (path, text) =>
    attempt(
      'cannot create',
      path,
      async () => {
        const handle = await fs.open(path, 'wx');
        try {
          await handle.writeFile(text);
        } catch (error) {
          // On a full disk the file is there all the same: as a lock it would keep everybody waiting for nobody.
          await fs.rm(path, { force: true });
          throw error;
        } finally {
          await handle.close();
        }
        return true;
      },
      ['EEXIST'],
      false,
    ),
  touch: (path) =>
    attempt(
      'cannot touch',
      path,
      async () => {
        const now = new Date();
        await fs.utimes(path, now, now);
        return true;
      },
      ABSENT,
      false,
    ),
  openWriter,
  readChunks,
  rename: (from, to) =>
    attempt('cannot rename to', to, async () => {
      await fs.rename(from, to);
      syncFolder(dirname(to));
    }),
  remove: (path) =>
    attempt(
      'cannot remove',
      path,
      async () => {
        await fs.unlink(path);
        return true;
      },
      ABSENT,
      false,
    ),
  removeEmptyFolder: (path) =>
    attempt(
      'cannot remove',
      path,
      async () => {
        await fs.rmdir(path);
        return true;
      },
      [...ABSENT, 'ENOTEMPTY', 'EEXIST'],
      false,
    ),
  removeTree: (path) => attempt('cannot remove', path, () => fs.rm(path, { recursive: true, force: true })),
  link,
  async freeBytes(path) {
    // The folder may not exist yet: its nearest existing ancestor is on the same file system.
    for (let folder = resolve(path); ; folder = dirname(folder)) {
      try {
        const facts = await fs.statfs(folder);
        return facts.bavail * facts.bsize;
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT' || dirname(folder) === folder) return null;
      }
    }
  },
  openSource: openFileSource,
};
