import { RuvLLMError } from '../../../core/errors.ts';
import { createSha256, type Sha256, toHex } from '../../../core/sha256.ts';
import type { ByteSource } from '../../../core/byte-source.ts';
import { openGguf } from '../../../gguf/reader.ts';
import type { SyncAccessHandle, WorkerFileHandle } from '../worker-scope.ts';
import { createBlobSource } from './blob-source.ts';
import { type FileRecord, PARTIAL, readJson, RECORD, removeQuietly, writeJson } from './model-folder.ts';
import { openRemotePart, readChunks, type SourcePart } from './remote-part.ts';
import { freeBytes, storageFull, toStorageError } from './storage-errors.ts';

/** A file to store; plain data, for a worker. */
export interface ImportTask {
  readonly name: string;
  readonly source:
    | { readonly url: string; readonly headers?: Readonly<Record<string, string>> }
    | { readonly blob: Blob; readonly label: string };
  /** The expected SHA-256, in hex; null: the one that the server names, if it does. */
  readonly sha256: string | null;
}

export interface ImportOptions {
  readonly onProgress: (doneBytes: number, totalBytes: number | null) => void;
  readonly signal: AbortSignal;
}

/** The state of an interrupted import. */
interface PartialRecord {
  /** Address or label: another source starts again. */
  readonly source: string;
  /** The version of a remote file (ETag or date); null: unknown, so that it cannot be continued. */
  readonly version: string | null;
  /** Bytes that are certainly on disk. */
  readonly flushedBytes: number;
}

/** Bytes between two flushes: a closed tab loses no more. */
const FLUSH_BYTES = 16 << 20;
/** The bytes themselves are refused. */
const DAMAGE: ReadonlySet<string> = new Set(['invalid_model_file', 'unsupported', 'hash_mismatch']);
const REHASH_BYTES = 4 << 20;

/**
 * Streams a file into the folder. Until the last byte is written, checked and flushed it is `NAME.partial`, which the next import
 * of the same source continues; only then it gets its name, in one step.
 */
export async function importFile(
  folder: FileSystemDirectoryHandle,
  task: ImportTask,
  options: ImportOptions,
): Promise<FileRecord> {
  const { name, source } = task;
  // A damaged file is refused before gigabytes of it are copied.
  if ('blob' in source) openGguf(createBlobSource(source.blob, name));
  const partialName = name + PARTIAL;
  const handle = (await folder.getFileHandle(partialName, { create: true })) as WorkerFileHandle;
  let file: SyncAccessHandle;
  try {
    file = await handle.createSyncAccessHandle();
  } catch (error) {
    throw toStorageError(error, `storing ${name}`);
  }
  let isUseless = false;
  let record: FileRecord;
  try {
    record = await fill(folder, file, task, options);
    openGguf(createHandleSource(file, name));
  } catch (error) {
    // No bytes, or wrong ones: there is nothing to continue. Other failures keep them.
    isUseless = file.getSize() === 0 || (error instanceof RuvLLMError && DAMAGE.has(error.code));
    throw toStorageError(error, `storing ${name}`);
  } finally {
    file.close();
    if (isUseless) await Promise.all([partialName, partialName + RECORD].map((entry) => removeQuietly(folder, entry)));
  }
  // Without its record the next load hashes the file again; a record of other bytes would be believed.
  await removeQuietly(folder, name + RECORD);
  await handle.move(name);
  await writeJson(folder, name + RECORD, record);
  await removeQuietly(folder, partialName + RECORD);
  return record;
}

async function fill(
  folder: FileSystemDirectoryHandle,
  file: SyncAccessHandle,
  { name, source, sha256 }: ImportTask,
  { onProgress, signal }: ImportOptions,
): Promise<FileRecord> {
  const sourceName = 'url' in source ? source.url : source.label;
  const recordName = name + PARTIAL + RECORD;
  const earlier = (await readJson(folder, recordName)) as PartialRecord | null;
  const canContinue =
    earlier?.source === sourceName && earlier.flushedBytes <= file.getSize() && earlier.version !== null;
  const wish = canContinue ? { offset: earlier.flushedBytes, version: earlier.version } : { offset: 0, version: null };
  const part: SourcePart =
    'url' in source ? await openRemotePart(source, wish, signal) : openBlobPart(source.blob, wish.offset);
  const { totalBytes, version } = part;
  let at = part.offset;
  file.truncate(at);
  const needed = totalBytes === null ? 0 : totalBytes - at;
  const available = await freeBytes();
  if (available !== null && needed > available) throw storageFull(name, needed, available);
  const hash = createSha256();
  rehash(file, at, hash);
  let flushed = at;
  const flush = async (): Promise<void> => {
    file.flush();
    flushed = at;
    await writeJson(folder, recordName, { source: sourceName, version, flushedBytes: at } satisfies PartialRecord);
  };
  await flush();
  onProgress(at, totalBytes);
  try {
    for await (const bytes of part.chunks) {
      if (at === 0) checkMagic(bytes, name);
      const written = file.write(bytes, { at });
      // Chromium returns another number for a full storage, and not the bytes written.
      if (written !== bytes.length) throw storageFull(name, (totalBytes ?? at + bytes.length) - at, await freeBytes());
      hash.update(bytes);
      at += bytes.length;
      onProgress(at, totalBytes);
      if (at - flushed >= FLUSH_BYTES) await flush();
    }
  } catch (error) {
    await flush().catch(() => {}); // a full disk may refuse even this; the earlier flush counts then
    if (error instanceof DOMException && error.name === 'QuotaExceededError') {
      throw storageFull(name, totalBytes === null ? at : totalBytes - at, await freeBytes());
    }
    throw error;
  }
  if (totalBytes !== null && at !== totalBytes) {
    await flush();
    const message = `${name}: the source ended at byte ${at} of ${totalBytes}; the next attempt continues there`;
    throw new RuvLLMError('download_failed', message, { data: { doneBytes: at, totalBytes }, isRetryable: true });
  }
  file.flush();
  const digest = toHex(hash.digest());
  const expected = sha256 ?? part.sha256;
  if (expected !== null && expected !== digest) {
    const message = `${name} has the SHA-256 ${digest}, expected ${expected}`;
    throw new RuvLLMError('hash_mismatch', message, { data: { sha256: digest, expected } });
  }
  return { sizeBytes: at, sha256: digest, source: sourceName };
}

function openBlobPart(blob: Blob, offset: number): SourcePart {
  return {
    offset,
    totalBytes: blob.size,
    version: 'blob',
    sha256: null,
    chunks: readChunks(blob.slice(offset).stream()),
  };
}

function rehash(file: SyncAccessHandle, sizeBytes: number, hash: Sha256): void {
  const buffer = new Uint8Array(Math.min(REHASH_BYTES, sizeBytes));
  for (let at = 0; at < sizeBytes; at += buffer.length) {
    const part = buffer.subarray(0, Math.min(buffer.length, sizeBytes - at));
    file.read(part, { at });
    hash.update(part);
  }
}

function createHandleSource(file: SyncAccessHandle, name: string): ByteSource {
  return {
    name,
    sizeBytes: file.getSize(),
    readInto(target, offset) {
      const numRead = file.read(target, { at: offset });
      if (numRead !== target.byteLength) {
        throw new RuvLLMError('io', `${name}: ${numRead} of ${target.byteLength} bytes read at ${offset}`);
      }
    },
    close() {},
  };
}

/** Stops a download at once that is a page of an error instead of a model. */
function checkMagic(bytes: Uint8Array, name: string): void {
  const magic = String.fromCharCode(...bytes.subarray(0, 4));
  if (bytes.length >= 4 && magic !== 'GGUF') {
    throw new RuvLLMError('invalid_model_file', `${name} starts with ${JSON.stringify(magic)}, not with "GGUF"`);
  }
}
