import { RuvLLMError } from '../../../core/errors.ts';
import { toStorageError } from '../files/storage-errors.ts';
import type { SyncAccessHandle, WorkerFileHandle } from '../worker-scope.ts';
import { deriveSealing } from './sealing-key.ts';

/**
 * A log as a file:
 *   magic, 16 random bytes that name the file, then records: u32 length, nonce, sealed bytes with their tag.
 * Every file has a key of its own, derived from its random bytes; the place of a record is part of its seal, so that records cannot
 * be exchanged. The first record is empty: it tells a wrong key from damage.
 */
export interface SealedLog {
  readonly sizeBytes: number;
  /** Records that could not be opened; they are left out. */
  readonly numDamaged: number;
  /** Appends a record after those of earlier calls; it is on disk when the promise resolves. */
  append(plain: Uint8Array): Promise<void>;
  /** Replaces all records in one step: a closed tab leaves the old or the new ones. */
  rewrite(plains: readonly Uint8Array[]): Promise<void>;
  /** Resolves when all calls so far have ended, also failed ones. */
  settled(): Promise<void>;
  close(): void;
}

const MAGIC = new TextEncoder().encode('RUVLLML1');
const ID_BYTES = 16;
const HEADER_BYTES = MAGIC.length + ID_BYTES;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;
const OVERHEAD_BYTES = LENGTH_BYTES + NONCE_BYTES + TAG_BYTES;
const NEXT = '.next';

interface OpenFile {
  readonly handle: WorkerFileHandle;
  readonly access: SyncAccessHandle;
}

async function openFile(folder: FileSystemDirectoryHandle, name: string): Promise<OpenFile> {
  try {
    const handle = (await folder.getFileHandle(name, { create: true })) as WorkerFileHandle;
    return { handle, access: await handle.createSyncAccessHandle() };
  } catch (error) {
    throw toStorageError(error, `opening ${name}`);
  }
}

/** Records of one file. */
interface Seal {
  seal(index: number, plain: Uint8Array): Promise<Uint8Array>;
  /** null: the bytes are not this record. */
  open(index: number, bytes: Uint8Array): Promise<Uint8Array | null>;
}

async function createSeal(base: CryptoKey, id: Uint8Array<ArrayBuffer>, name: string): Promise<Seal> {
  const key = await deriveSealing(base, id, `log ${name}`);
  const aad = (index: number): Uint8Array<ArrayBuffer> =>
    Uint8Array.from(new Uint8Array(Float64Array.of(index).buffer));
  return {
    async seal(index, plain) {
      const iv = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
      // A copy: shared memory cannot be sealed.
      const sealed = await crypto.subtle.encrypt(
        { name: 'AES-GCM', iv, additionalData: aad(index) },
        key,
        plain.slice(),
      );
      const bytes = new Uint8Array(LENGTH_BYTES + NONCE_BYTES + sealed.byteLength);
      new DataView(bytes.buffer).setUint32(0, NONCE_BYTES + sealed.byteLength, true);
      bytes.set(iv, LENGTH_BYTES);
      bytes.set(new Uint8Array(sealed), LENGTH_BYTES + NONCE_BYTES);
      return bytes;
    },
    async open(index, bytes) {
      const iv = bytes.slice(0, NONCE_BYTES);
      try {
        const plain = await crypto.subtle.decrypt(
          { name: 'AES-GCM', iv, additionalData: aad(index) },
          key,
          bytes.slice(NONCE_BYTES),
        );
        return new Uint8Array(plain);
      } catch {
        return null;
      }
    },
  };
}

/** Writes a header and the empty record. */
async function startFile(access: SyncAccessHandle, base: CryptoKey, name: string) {
  const id = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const seal = await createSeal(base, id, name);
  const header = new Uint8Array(HEADER_BYTES);
  header.set(MAGIC);
  header.set(id, MAGIC.length);
  access.truncate(0);
  let at = write(access, header, 0, name);
  at = write(access, await seal.seal(0, new Uint8Array(0)), at, name);
  return { seal, at, numRecords: 1 };
}

/** Returns the byte after it. */
function write(access: SyncAccessHandle, bytes: Uint8Array, at: number, name: string): number {
  // Chromium returns another number for a full storage, and not the bytes written.
  if (access.write(bytes, { at }) === bytes.length) return at + bytes.length;
  throw new RuvLLMError('disk_full', `${name}: the browser has no space for ${bytes.length} more bytes`, {
    data: { neededBytes: bytes.length },
  });
}

async function readFile(access: SyncAccessHandle, base: CryptoKey, name: string) {
  const bytes = new Uint8Array(access.getSize());
  access.read(bytes, { at: 0 });
  if (bytes.length < HEADER_BYTES || MAGIC.some((byte, i) => bytes[i] !== byte)) {
    throw new RuvLLMError('io', `${name} has ${bytes.length} bytes and is not a log of RuvLLM`, { data: { name } });
  }
  const seal = await createSeal(base, bytes.slice(MAGIC.length, HEADER_BYTES), name);
  const view = new DataView(bytes.buffer);
  const records: Uint8Array[] = [];
  let at = HEADER_BYTES;
  let end = at;
  let index = 0;
  let numDamaged = 0;
  for (; at + LENGTH_BYTES <= bytes.length; index++) {
    const next = at + LENGTH_BYTES + view.getUint32(at, true);
    if (next > bytes.length || next < at + OVERHEAD_BYTES) break; // the tab was closed in the middle of a write
    const plain = await seal.open(index, bytes.subarray(at + LENGTH_BYTES, next));
    if (index === 0 && plain === null) {
      throw new RuvLLMError('invalid_option', `${name} is sealed with another key`, { data: { name } });
    }
    if (plain === null) numDamaged++;
    else if (index > 0) records.push(plain);
    at = next;
    end = next;
  }
  return { seal, at: end, numRecords: index, records, numDamaged };
}

/** Opens or creates a log, in a worker. `in_use`: another tab has it; `invalid_option`: it is sealed with another key. */
export async function openSealedLog(
  folder: FileSystemDirectoryHandle,
  name: string,
  base: CryptoKey,
): Promise<{ readonly log: SealedLog; readonly records: readonly Uint8Array[] }> {
  let file = await openFile(folder, name);
  let state: { seal: Seal; at: number; numRecords: number };
  let records: readonly Uint8Array[] = [];
  let numDamaged = 0;
  try {
    // A file without its first record is one whose start was interrupted: it never held anything.
    if (file.access.getSize() < HEADER_BYTES + OVERHEAD_BYTES) state = await startFile(file.access, base, name);
    else {
      const found = await readFile(file.access, base, name);
      ({ records, numDamaged } = found);
      state = found;
      file.access.truncate(state.at);
    }
    file.access.flush();
  } catch (error) {
    file.access.close();
    throw toStorageError(error, `opening ${name}`);
  }

  /** Calls run one after the other: the place of a record is part of its seal. */
  let last: Promise<unknown> = Promise.resolve();
  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const turn = last.then(run, run);
    last = turn.catch(() => {});
    return turn.catch((error: unknown) => {
      throw toStorageError(error, `writing ${name}`);
    });
  }

  /** Records that wait for the next flush; a flush takes milliseconds, however many records it is for. */
  let waiting: Uint8Array[] = [];
  let nextFlush: Promise<void> | null = null;

  function append(plain: Uint8Array): Promise<void> {
    waiting.push(plain);
    nextFlush ??= inTurn(() => {
      const group = waiting;
      waiting = [];
      nextFlush = null;
      return appendAll(group);
    });
    return nextFlush;
  }

  async function appendAll(plains: readonly Uint8Array[]): Promise<void> {
    const sealed = await Promise.all(plains.map((plain, i) => state.seal.seal(state.numRecords + i, plain)));
    try {
      const at = sealed.reduce((offset, bytes) => write(file.access, bytes, offset, name), state.at);
      file.access.flush();
      state = { ...state, at, numRecords: state.numRecords + sealed.length };
    } catch (error) {
      file.access.truncate(state.at); // half a record would hide those after it
      throw error;
    }
  }

  async function rewrite(plains: readonly Uint8Array[]): Promise<void> {
    const next = await openFile(folder, name + NEXT);
    let nextState: typeof state;
    try {
      nextState = await startFile(next.access, base, name);
      for (const plain of plains) {
        const bytes = await nextState.seal.seal(nextState.numRecords, plain);
        nextState = {
          ...nextState,
          at: write(next.access, bytes, nextState.at, name),
          numRecords: nextState.numRecords + 1,
        };
      }
      next.access.flush();
    } catch (error) {
      next.access.close();
      await folder.removeEntry(name + NEXT).catch(() => {});
      throw error;
    }
    next.access.close();
    file.access.close();
    try {
      await next.handle.move(name);
      state = nextState;
    } finally {
      file = await openFile(folder, name);
    }
  }

  return {
    records,
    log: {
      get sizeBytes() {
        return state.at;
      },
      numDamaged,
      append,
      rewrite: (plains) => inTurn(() => rewrite(plains)),
      settled: async () => void (await last),
      close: () => file.access.close(),
    },
  };
}
