import { RuvLLMError } from '../core/errors.ts';
import type { ProcessIdentity } from './platform.ts';
import { checkAborted, type PullContext } from './pull-context.ts';

const POLL_MS = 300;
/** Breaking a lock takes two file operations. */
const BREAK_POLL_MS = 10;
/** Interval at which the owner touches its lock. */
const HEARTBEAT_MS = 5000;
/** A lock of another host, or an unreadable one, is dead if untouched this long (12 missed heartbeats). */
const SILENT_MS = 60_000;
const MAX_LOCK_BYTES = 4096;

/** A held lock; the owner calls `keep` while it works. */
export interface Lock {
  /** Keeps the lock fresh; cheap enough for every chunk. Throws `io` if another process took it over. */
  keep(): Promise<void>;
  /** Throws `io` unless the lock is still ours. */
  requireHeld(): Promise<void>;
  release(): Promise<void>;
}

function parseOwner(text: string): ProcessIdentity | null {
  try {
    const value = JSON.parse(text) as Partial<ProcessIdentity> | null;
    if (typeof value?.host !== 'string' || !Number.isSafeInteger(value.pid)) return null;
    return { host: value.host, pid: value.pid!, startToken: String(value.startToken ?? '') };
  } catch {
    return null;
  }
}

async function isStale(context: PullContext, path: string, text: string): Promise<boolean> {
  const { platform } = context;
  const owner = parseOwner(text);
  if (owner !== null && owner.host === platform.identity.host) return !platform.isProcessAlive(owner);
  const facts = await platform.files.stat(path);
  return facts !== null && platform.now() - facts.modifiedMs > SILENT_MS;
}

/**
 * Removes a dead lock. Several waiters may find it dead at once, and a slow one must not remove the lock that a faster one has acquired
 * since: only the holder of the `.break` file removes it, after a second check, and the dead owner cannot interfere.
 */
async function clearStale(context: PullContext, path: string, deadText: string): Promise<void> {
  const { files, now, sleep } = context.platform;
  const breaker = `${path}.break`;
  if (!(await files.createExclusive(breaker, deadText))) {
    const facts = await files.stat(breaker);
    if (facts !== null && now() - facts.modifiedMs > SILENT_MS) await files.remove(breaker); // Its holder died here.
    await sleep(BREAK_POLL_MS, context.signal);
    return;
  }
  try {
    if ((await files.readText(path, MAX_LOCK_BYTES)) === deadText) await files.remove(path);
  } finally {
    await files.remove(breaker);
  }
}

/** Waits for the lock file and takes over from processes that died with it. */
export async function acquireLock(context: PullContext, folder: string, name: string): Promise<Lock> {
  const { files, identity, uniqueName, now, sleep } = context.platform;
  const path = files.join(folder, `${name}.lock`);
  const text = JSON.stringify({ ...identity, nonce: uniqueName() });
  await files.makeFolder(folder);
  while (!(await files.createExclusive(path, text))) {
    checkAborted(context, `waiting for ${name}`);
    const ownerText = await files.readText(path, MAX_LOCK_BYTES);
    if (ownerText === null) continue;
    if (await isStale(context, path, ownerText)) {
      await clearStale(context, path, ownerText);
      continue;
    }
    context.onProgress({ phase: 'wait', item: name, doneBytes: 0, totalBytes: null });
    await sleep(POLL_MS, context.signal);
  }
  let lastTouch = now();
  const isMine = async (): Promise<boolean> => (await files.readText(path, MAX_LOCK_BYTES)) === text;
  const requireHeld = async (): Promise<void> => {
    if (!(await isMine())) throw new RuvLLMError('io', `${path}: another process took over the lock`);
  };
  return {
    async keep() {
      if (now() - lastTouch < HEARTBEAT_MS) return;
      lastTouch = now();
      await requireHeld();
      await files.touch(path);
    },
    requireHeld,
    async release() {
      if (await isMine()) await files.remove(path);
    },
  };
}

/** Whether a live process holds this lock now. */
export async function isLocked(context: PullContext, folder: string, name: string): Promise<boolean> {
  const path = context.platform.files.join(folder, `${name}.lock`);
  const text = await context.platform.files.readText(path, MAX_LOCK_BYTES);
  return text !== null && !(await isStale(context, path, text));
}
