import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { isProcessAlive, ownIdentity } from '../process/process-identity.ts';
import { createFileOnce, readWhole, type Files } from '../sealing/atomic-files.ts';

/** Interval of the owner's heartbeat. */
const HEARTBEAT_MS = 5000;
/** A lock of another machine, or of a dead thread of this process, expires after this time. */
const SILENT_MS = 60_000;
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
  const own: Owner = { ...ownIdentity(), nonce: randomBytes(8).toString('hex') };
  const text = Buffer.from(JSON.stringify(own));

  function read(): { owner: Owner | null; ageMs: number } | null {
    try {
      const ageMs = now() - files.statSync(path).mtimeMs;
      return { owner: parseOwner(readWhole(files, path, MAX_LOCK_BYTES)), ageMs };
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
      if (moved?.nonce !== dead?.nonce) files.linkSync(aside, path);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw toFileError(error, 'removing the lock', path);
    } finally {
      files.rmSync(aside, { force: true });
    }
  }

  function removeOwn(): void {
    try {
      const { nonce } = JSON.parse(files.readFileSync(path, 'utf8')) as Partial<Owner>;
      if (nonce === own.nonce) files.rmSync(path, { force: true });
    } catch {
      // It expires.
    }
  }

  function take(): { owner: Owner | null; ageMs: number } | null {
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
    if (held?.owner?.nonce === own.nonce) break;
    if (held === null || (isDead(held.owner, held.ageMs) && attempt < 3)) {
      if (held !== null) clear(held.owner);
      if (attempt < 10) continue;
    }
    const by = held?.owner ? `process ${held.owner.pid} on ${held.owner.host}` : 'another process';
    throw new RuvLLMError('conflict', `${folder} is in use by ${by}`, {
      data: { path: folder, pid: held?.owner?.pid ?? null },
      isRetryable: true,
    });
  }

  let isHeld = true;
  /** A read error does not mean that another process has it. */
  const isOwn = (): boolean => {
    try {
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
