import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { isProcessAlive, ownIdentity } from '../process/process-identity.ts';
import { createFileOnce, readWhole, removeQuietly, replaceFile, type Files } from '../sealing/atomic-files.ts';

/** Interval of the owner's heartbeat. */
const HEARTBEAT_MS = 5000;
/** A lock of another machine, or of a dead thread of this process, expires after this time. */
const SILENT_MS = 60_000;
/** Writing a lock takes less. */
const WRITTEN_MS = 300;
const MAX_LOCK_BYTES = 1024;

interface FolderLock {
  /** Throws `conflict` when another process took the folder after a missed heartbeat. */
  requireHeld(): void;
  release(): void;
}

interface Owner {
  readonly host: string;
  readonly pid: number;
  readonly startToken: string;
  readonly nonce: string;
}

interface LockFile {
  /** Of the lock or, if that is damaged, of its copy. */
  readonly owner: Owner | null;
  readonly ageMs: number;
  readonly isDamaged: boolean;
}

function parseOwner(bytes: Uint8Array | null): Owner | null {
  try {
    const { host, pid, startToken, nonce } = JSON.parse(new TextDecoder().decode(bytes ?? undefined)) as Partial<Owner>;
    if (typeof host !== 'string' || !Number.isSafeInteger(pid) || typeof nonce !== 'string') return null;
    return { host, pid: pid!, startToken: String(startToken ?? ''), nonce };
  } catch {
    return null;
  }
}

/**
 * Takes `<folder>/owner.lock`, also from a dead process. SQLite's own locks do not suffice: its two drivers do not see each
 * other's. Throws `conflict` when another process has it.
 */
export function lockFolder(files: Files, folder: string, now: () => number = Date.now): FolderLock {
  const path = join(folder, 'owner.lock');
  /** Says who the owner is if the lock is damaged, or removed while the owner runs. */
  const copyPath = `${path}.copy`;
  const own: Owner = { ...ownIdentity(), nonce: randomBytes(8).toString('hex') };
  const text = Buffer.from(JSON.stringify(own));

  function readCopy(): Owner | null {
    try {
      return parseOwner(readWhole(files, copyPath, MAX_LOCK_BYTES));
    } catch {
      return null;
    }
  }

  function read(): LockFile | null {
    try {
      const ageMs = now() - files.statSync(path).mtimeMs;
      const owner = parseOwner(readWhole(files, path, MAX_LOCK_BYTES));
      return { owner: owner ?? readCopy(), ageMs, isDamaged: owner === null };
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null;
      throw toFileError(error, 'reading the lock', path);
    }
  }

  function isDead(owner: Owner | null, ageMs: number): boolean {
    if (owner === null || owner.host !== own.host || owner.pid === own.pid) {
      const isOlderSelf = owner?.host === own.host && !isProcessAlive(owner);
      return isOlderSelf || ageMs > SILENT_MS;
    }
    return !isProcessAlive(owner);
  }

  /** Moves a dead lock away, then checks what it moved: another process may have taken the lock meanwhile. */
  function clear(dead: Owner | null): void {
    const aside = `${path}.${own.nonce}`;
    try {
      files.renameSync(path, aside);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return;
      throw toFileError(error, 'removing the lock', path);
    }
    try {
      const moved = parseOwner(readWhole(files, aside, MAX_LOCK_BYTES));
      if (moved !== null && moved.nonce !== dead?.nonce) files.linkSync(aside, path);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw toFileError(error, 'removing the lock', path);
    } finally {
      files.rmSync(aside, { force: true });
    }
  }

  function removeOwn(): void {
    if (readCopy()?.nonce === own.nonce) removeQuietly(files, copyPath);
    try {
      const { nonce } = JSON.parse(files.readFileSync(path, 'utf8')) as Partial<Owner>;
      if (nonce === own.nonce) files.rmSync(path, { force: true });
    } catch {
      // It expires.
    }
  }

  function take(): LockFile | null {
    try {
      createFileOnce(files, path, text);
      return read();
    } catch (error) {
      removeOwn(); // it may exist although the write failed
      throw toFileError(error, 'writing the lock', path);
    }
  }

  for (let attempt = 0; ; attempt++) {
    const held = take();
    if (held?.owner?.nonce === own.nonce) {
      const other = attempt === 0 ? readCopy() : null;
      if (other === null || other.host !== own.host || other.pid === own.pid || !isProcessAlive(other)) break;
      removeOwn(); // the lock was removed, but its owner still runs
      throw inUse(other);
    }
    // Without hard links, a lock is short for a moment while it is written.
    if (held?.isDamaged === true && held.ageMs < WRITTEN_MS && attempt < 3) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WRITTEN_MS);
      continue;
    }
    if (held === null || (isDead(held.owner, held.ageMs) && attempt < 6)) {
      if (held !== null) clear(held.owner);
      if (attempt < 10) continue;
    }
    throw inUse(held?.owner ?? null);
  }
  writeCopy();

  function inUse(owner: Owner | null): RuvLLMError {
    const by = owner === null ? 'another process' : `process ${owner.pid} on ${owner.host}`;
    return new RuvLLMError('conflict', `${folder} is in use by ${by}`, {
      data: { path: folder, pid: owner?.pid ?? null },
      isRetryable: true,
    });
  }

  function writeCopy(): void {
    try {
      replaceFile(files, copyPath, [text], false);
    } catch {
      // The lock itself is enough while it is intact.
    }
  }

  let isHeld = true;
  /** A read error does not mean that another process has it. A damaged or removed lock is written again. */
  const isOwn = (): boolean => {
    try {
      const onDisk = files.existsSync(path) ? parseOwner(readWhole(files, path, MAX_LOCK_BYTES)) : null;
      if (onDisk === null) {
        if (files.existsSync(path)) clear(null);
        createFileOnce(files, path, text);
      }
      if (readCopy()?.nonce !== own.nonce && read()?.owner?.nonce === own.nonce) writeCopy();
      return read()?.owner?.nonce === own.nonce;
    } catch {
      return true;
    }
  };
  const timer = setInterval(() => {
    try {
      isHeld = isHeld && isOwn();
      if (isHeld) files.utimesSync(path, new Date(), new Date());
    } catch {
      // Tried again at the next heartbeat.
    }
  }, HEARTBEAT_MS);
  timer.unref();
  return {
    requireHeld() {
      if (!isHeld)
        throw new RuvLLMError('conflict', `${folder} was taken by another process`, { data: { path: folder } });
    },
    release() {
      clearInterval(timer);
      removeOwn();
    },
  };
}
