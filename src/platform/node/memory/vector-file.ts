import { createCipheriv, type KeyObject, randomFillSync } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { BlockFile, BlockRead } from '../../../memory/vector-index/block-file.ts';
import { PAGE_BYTES } from '../../../memory/vector-index/dirty-pages.ts';
import { toFileError } from '../files/file-errors.ts';
import { type Files, flushFolder, makeFolder } from '../sealing/atomic-files.ts';
import { frame, NONCE_BYTES, TAG_BYTES } from '../sealing/sealing.ts';
import { readBlocks } from './block-readers.ts';
import { CIPHER, openBlock, readFully, SEAL_BYTES, STORED_BYTES } from './stored-block.ts';

/** Starting threads takes milliseconds, which pays from this number of blocks. */
const MANY_BLOCKS = 256;
/** More would be limited by memory bandwidth. */
const MAX_READERS = 3;

interface VectorFileOptions {
  readonly path: string;
  /** 32 bytes; may be shared, because blocks are bound to `identity`. */
  readonly key: KeyObject | Uint8Array;
  /** For example tenant, kind and space: a swapped file counts as damaged. */
  readonly identity: readonly string[];
  /** Default `node:fs`. */
  readonly files?: Files;
  /** Further threads for reads of at least `from` blocks. Default: the other cores, at most three; none with custom `files`. */
  readonly readers?: { readonly count: number; readonly from: number; readonly worker?: URL };
}

export interface VectorFile extends BlockFile {
  close(): void;
}

/** Opens or creates a file of blocks sealed with AES-256-GCM and a random nonce per write. */
export function openVectorFile(options: VectorFileOptions): VectorFile {
  const { path, key, identity, files = nodeFiles } = options;
  const count = files === nodeFiles ? Math.min(MAX_READERS, availableParallelism() - 1) : 0;
  const { readers = { count, from: MANY_BLOCKS } } = options;
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

  function read(block: number, name: string, into: Uint8Array): boolean {
    const length = attempt('reading', () => readFully(files, handle, stored, block * STORED_BYTES));
    return length === STORED_BYTES && openBlock(key, stored, associated(block, name), into);
  }

  return {
    blockBytes: PAGE_BYTES,
    get numBlocks() {
      return numBlocks;
    },
    read,
    async readMany(wanted) {
      const here = ({ block, name, into }: BlockRead): boolean => read(block, name, into);
      if (readers.count === 0 || wanted.length < readers.from) return wanted.find((each) => !here(each)) ?? null;
      const { worker } = readers;
      const some = { handle, key, identity, numReaders: readers.count, ...(worker === undefined ? {} : { worker }) };
      return readBlocks(wanted, some, here);
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

/** On a nearly full disk, a write may be partial, and only the next one fails. */
function writeFully(files: Files, handle: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length;) at += files.writeSync(handle, bytes, at, bytes.length - at, position + at);
}
