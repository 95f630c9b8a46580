import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { dirname } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { BlockFile } from '../../../memory/vector-index/block-file.ts';
import { PAGE_BYTES } from '../../../memory/vector-index/dirty-pages.ts';
import { toFileError } from '../file-errors.ts';
import { type Files, flushFolder, makeFolder } from '../sealing/atomic-files.ts';
import { frame, NONCE_BYTES, TAG_BYTES } from '../sealing/sealing.ts';

const CIPHER = 'aes-256-gcm';
const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;
/** A block as it lies in the file: nonce, tag, sealed bytes. */
const STORED_BYTES = SEAL_BYTES + PAGE_BYTES;
/** Each piece comes back in memory of its own: larger ones are twice as slow, for they come from the system. */
const PIECE_BYTES = 1 << 15;

export interface VectorFileOptions {
  readonly path: string;
  /** 32 bytes; of this file alone or shared: blocks are bound to `identity`. */
  readonly key: KeyObject | Uint8Array;
  /** What the file is of, for example tenant, kind and space: a file put in the place of another one is damaged. */
  readonly identity: readonly string[];
  /** Default `node:fs`. */
  readonly files?: Files;
}

export interface VectorFile extends BlockFile {
  close(): void;
}

/** Opens or makes a file of sealed blocks; AES-256-GCM with a random nonce for each write. */
export function openVectorFile({ path, key, identity, files = nodeFiles }: VectorFileOptions): VectorFile {
  const { handle, sizeBytes } = open(files, path);
  let numBlocks = Math.floor(sizeBytes / STORED_BYTES);
  const stored = Buffer.allocUnsafeSlow(STORED_BYTES);
  const padding = Buffer.alloc(PAGE_BYTES);
  let isOpen = true;

  const attempt = <T>(doing: string, action: () => T): T => {
    if (!isOpen) throw new RuvLLMError('io', `${doing} ${path}: the file is closed`, { data: { path } });
    try {
      return action();
    } catch (error) {
      throw toFileError(error, doing, path);
    }
  };
  const associated = (block: number, name: string): Uint8Array => frame(...identity, String(block), name);

  return {
    blockBytes: PAGE_BYTES,
    get numBlocks() {
      return numBlocks;
    },
    read(block, name, into) {
      const length = attempt('reading', () => readFully(files, handle, stored, block * STORED_BYTES));
      if (length < STORED_BYTES) return false;
      const decipher = createDecipheriv(CIPHER, key, stored.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(associated(block, name));
      decipher.setAuthTag(stored.subarray(NONCE_BYTES, SEAL_BYTES));
      for (let at = 0; at < PAGE_BYTES; at += PIECE_BYTES) {
        const plain = decipher.update(stored.subarray(SEAL_BYTES + at, SEAL_BYTES + at + PIECE_BYTES));
        if (at < into.length) into.set(plain.subarray(0, into.length - at), at);
      }
      try {
        decipher.final();
        return true;
      } catch {
        return false;
      }
    },
    write(block, name, bytes) {
      if (bytes.length > PAGE_BYTES || block > numBlocks) {
        throw new RuvLLMError('internal', `block ${block} of ${numBlocks} with ${bytes.length} bytes`);
      }
      const nonce = randomFillSync(stored.subarray(0, NONCE_BYTES));
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(associated(block, name));
      const sealed = cipher.update(bytes);
      const rest = cipher.update(padding.subarray(bytes.length));
      cipher.final();
      cipher.getAuthTag().copy(stored, NONCE_BYTES);
      sealed.copy(stored, SEAL_BYTES);
      rest.copy(stored, SEAL_BYTES + sealed.length);
      attempt('writing', () => writeFully(files, handle, stored, block * STORED_BYTES));
      numBlocks = Math.max(numBlocks, block + 1);
    },
    flush: () => attempt('flushing', () => files.fdatasyncSync(handle)),
    close() {
      if (!isOpen) return;
      attempt('closing', () => files.closeSync(handle));
      isOpen = false;
    },
  };
}

function open(files: Files, path: string): { handle: number; sizeBytes: number } {
  try {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = files.constants;
    makeFolder(files, dirname(path), true);
    const isNew = !files.existsSync(path);
    const handle = files.openSync(path, O_RDWR | O_CREAT | (O_NOFOLLOW ?? 0), 0o600);
    if (isNew) flushFolder(files, dirname(path));
    return { handle, sizeBytes: files.fstatSync(handle).size };
  } catch (error) {
    throw toFileError(error, 'opening', path);
  }
}

/** The number of bytes there were. */
function readFully(files: Files, handle: number, into: Uint8Array, position: number): number {
  let length = 0;
  while (length < into.length) {
    const numRead = files.readSync(handle, into, length, into.length - length, position + length);
    if (numRead === 0) break;
    length += numRead;
  }
  return length;
}

/** A write to a nearly full disk takes a part and fails only the next time. */
function writeFully(files: Files, handle: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length;) at += files.writeSync(handle, bytes, at, bytes.length - at, position + at);
}
