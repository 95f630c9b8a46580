import { randomBytes } from 'node:crypto';
import type * as nodeFiles from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errnoOf } from '../files/file-errors.ts';

/** `node:fs`, or what a test puts in its place. */
export type Files = typeof nodeFiles;

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** `<name>.<process>-<anything>.tmp` */
const TEMPORARY = /\.(\d{1,10})-[0-9a-f]+\.tmp$/;
/** Far more than a write takes: an older one belongs to nobody, even where its process id was given away again. */
const ABANDONED_MS = 60_000;

// Two threads of a process each have a module of their own: the random part tells their files apart.
const INSTANCE = randomBytes(8).toString('hex');
let numTemporaries = 0;
const temporaryFor = (path: string): string =>
  `${path}.${process.pid}-${INSTANCE}${(numTemporaries++).toString(16).padStart(8, '0')}.tmp`;

export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name);
}

/** What was made, renamed or removed in a folder is on the disk when this returns. Windows opens no folders. */
export function flushFolder(files: Files, folder: string): void {
  if (process.platform === 'win32') return;
  const handle = files.openSync(folder, 'r');
  try {
    files.fsyncSync(handle);
  } finally {
    files.closeSync(handle);
  }
}

/** Makes a folder and those above it; `isDurable`: also on the disk when this returns. */
export function makeFolder(files: Files, folder: string, isDurable: boolean): void {
  const first = files.mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  if (first === undefined || !isDurable) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) flushFolder(files, dirname(made));
}

/** A write to a nearly full disk takes a part and fails only the next time: so until nothing is left. */
function writeAll(files: Files, handle: number, parts: readonly Uint8Array[]): void {
  let rest = parts.filter((part) => part.length > 0);
  while (rest.length > 0) {
    let numWritten = files.writevSync(handle, rest);
    while (rest.length > 0 && numWritten >= rest[0]!.length) numWritten -= rest.shift()!.length;
    if (numWritten > 0) rest = [rest[0]!.subarray(numWritten), ...rest.slice(1)];
  }
}

/** Another process may remove a folder that it finds empty, before our file is in it: that many times in a row is no accident. */
const MAX_FOLDER_ATTEMPTS = 16;

function openNew(files: Files, path: string, isDurable: boolean): number {
  for (let attempt = 0; ; attempt++) {
    try {
      if (attempt > 0) makeFolder(files, dirname(path), isDurable);
      return files.openSync(path, 'wx', FILE_MODE);
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || attempt === MAX_FOLDER_ATTEMPTS) throw error;
    }
  }
}

function writeTemporary(files: Files, path: string, parts: readonly Uint8Array[], isDurable: boolean): void {
  const handle = openNew(files, path, isDurable);
  try {
    writeAll(files, handle, parts);
    if (isDurable) files.fsyncSync(handle);
  } finally {
    files.closeSync(handle);
  }
}

/** For what is nobody's loss. */
export function removeQuietly(files: Files, path: string): void {
  try {
    files.rmSync(path, { force: true });
  } catch {
    // What stays is found by `removeAbandoned`.
  }
}

/** Of the name itself, not of what it may point to; undefined when it vanished or the disk does not say. */
export function statQuietly(files: Files, path: string): nodeFiles.Stats | undefined {
  try {
    return files.lstatSync(path);
  } catch {
    return undefined;
  }
}

/** Puts a whole file in the place of `path`, or changes nothing and throws what the disk said. */
export function replaceFile(files: Files, path: string, parts: readonly Uint8Array[], isDurable: boolean): void {
  const temporary = temporaryFor(path);
  try {
    writeTemporary(files, temporary, parts, isDurable);
    files.renameSync(temporary, path);
  } catch (error) {
    removeQuietly(files, temporary);
    throw error;
  }
  if (isDurable) flushFolder(files, dirname(path));
}

/** File systems without hard links say one of these. */
const NO_LINKS = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EMLINK']);

/**
 * Makes a file that is whole from its first moment, unless there is one: of several who try, one succeeds, and all then read
 * the same. Where there are no hard links, a second one that starts in the same moment may see the file too short and refuse it.
 */
export function createFileOnce(files: Files, path: string, bytes: Uint8Array): void {
  const temporary = temporaryFor(path);
  try {
    writeTemporary(files, temporary, [bytes], true);
    try {
      files.linkSync(temporary, path);
    } catch (error) {
      if (NO_LINKS.has(errnoOf(error) ?? '')) writeTemporary(files, path, [bytes], true);
      else throw error;
    }
    flushFolder(files, dirname(path));
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  } finally {
    removeQuietly(files, temporary);
  }
}

/** The whole file, into `scratch` where that is large enough; null when it has more than `maxBytes`. */
export function readWhole(
  files: Files,
  path: string,
  maxBytes: number,
  use: { scratch?: Uint8Array; isTouched?: boolean } = {},
): Uint8Array | null {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = files.constants;
  // A pipe would wait for somebody to write to it.
  const handle = files.openSync(path, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  try {
    const { size } = files.fstatSync(handle);
    if (size > maxBytes) return null;
    const into = (use.scratch?.length ?? -1) >= size ? use.scratch! : Buffer.allocUnsafe(size);
    let length = 0;
    while (length < size) {
      const numRead = files.readSync(handle, into, length, size - length, length);
      if (numRead === 0) break;
      length += numRead;
    }
    if (use.isTouched === true) touch(files, handle);
    return into.subarray(0, length);
  } finally {
    files.closeSync(handle);
  }
}

/** The time of the last use; a folder that cannot be written keeps the old one. */
function touch(files: Files, handle: number): void {
  try {
    const now = Date.now() / 1000;
    files.futimesSync(handle, now, now);
  } catch {
    // The page goes a little sooner than it should.
  }
}

function isRunning(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === 'EPERM';
  }
}

/**
 * Removes those of `names` that a process left behind when it was killed. One still being written by somebody stays; taken by
 * mistake (another machine on the same folder), it costs that write and nothing else. In a container the process killed before
 * often had our own id: then the file is older than we are.
 */
export function removeAbandoned(files: Files, folder: string, names: readonly string[]): void {
  const startMs = Date.now() - process.uptime() * 1000;
  for (const name of names) {
    const owner = TEMPORARY.exec(basename(name))?.[1];
    if (owner === undefined) continue;
    const path = join(folder, name);
    const writtenMs = statQuietly(files, path)?.mtimeMs;
    if (writtenMs === undefined) continue;
    const isOld = writtenMs < Date.now() - ABANDONED_MS || (Number(owner) === process.pid && writtenMs < startMs);
    if (isOld || !isRunning(Number(owner))) removeQuietly(files, path);
  }
}

/** The names in a folder; none when there is no folder of that name. */
export function listNames(files: Files, folder: string): string[] {
  try {
    return files.readdirSync(folder);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}
