import { randomFillSync, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import type { StoreHead, StoredHead } from '../../../memory/store/sqlite/store-head.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { flushFolder, readWhole, replaceFile, type Files } from '../sealing/atomic-files.ts';
import { NONCE_BYTES, seal, TAG_BYTES, unseal } from '../sealing/sealing.ts';

/**
 * Three slots. The first is written and flushed when the memory opens. The others are written in turn and in place, without a
 * flush: a power failure can tear both, and the first is still whole. A slot:
 *
 * | offset | bytes |                                          |
 * | ------ | ----- | ---------------------------------------- |
 * | 0      | 12    | nonce                                    |
 * | 12     | 2020  | JSON, filled up with spaces, sealed      |
 * | 2032   | 16    | tag                                      |
 */
const SLOT_BYTES = 2048;
const PLAIN_BYTES = SLOT_BYTES - NONCE_BYTES - TAG_BYTES;
const NUM_SLOTS = 3;
/** A longer text is cut: a slot holds one problem and its numbers. */
const MAX_PROBLEM_CHARS = 900;

/** What the memory of a folder should contain, sealed in `memory.head` beside the database. */
export interface StateHead extends StoreHead {
  /** Opens or creates the file; `absent`: there was none; `damaged`: no slot opens. */
  read(): StoredHead | 'absent' | 'damaged';
  close(): void;
}

export function openStateHead(files: Files, folder: string, key: KeyObject): StateHead {
  const path = join(folder, 'memory.head');
  let handle: number | null = null;
  let nextSlot = 1;
  let slotSequence = 0;

  const associated = (slot: number): Uint8Array => Buffer.from(`memory head ${slot}`);

  function openSlot(bytes: Uint8Array, slot: number): (StoredHead & { readonly slotSequence: number }) | null {
    const part = bytes.subarray(slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES);
    if (part.length !== SLOT_BYTES) return null;
    const plain = unseal(key, part.subarray(0, NONCE_BYTES), associated(slot), {
      bytes: part.subarray(NONCE_BYTES, SLOT_BYTES - TAG_BYTES),
      tag: part.subarray(SLOT_BYTES - TAG_BYTES),
    });
    return plain === null ? null : (JSON.parse(Buffer.from(plain).toString()) as never);
  }

  function sealSlot(head: StoredHead, slot: number): Uint8Array {
    const problem = head.problem === null ? null : head.problem.slice(0, MAX_PROBLEM_CHARS);
    let plain = Buffer.from(JSON.stringify({ ...head, problem, slotSequence: ++slotSequence }));
    if (plain.length > PLAIN_BYTES) {
      plain = Buffer.from(JSON.stringify({ ...head, problem: 'see the log', slotSequence }));
    }
    const padded = Buffer.alloc(PLAIN_BYTES, ' ');
    padded.set(plain);
    const nonce = randomFillSync(new Uint8Array(NONCE_BYTES));
    const { bytes, tag } = seal(key, nonce, associated(slot), padded);
    return Buffer.concat([nonce, bytes, tag]);
  }

  return {
    read() {
      let bytes: Uint8Array | null;
      try {
        bytes = readWhole(files, path, NUM_SLOTS * SLOT_BYTES);
      } catch (error) {
        if (errnoOf(error) === 'ENOENT') return 'absent';
        throw toFileError(error, 'reading the head', path);
      }
      let newest: ReturnType<typeof openSlot> = null;
      for (let slot = 0; slot < NUM_SLOTS; slot++) {
        const head = bytes === null ? null : openSlot(bytes, slot);
        if (head === null || head.slotSequence <= (newest?.slotSequence ?? 0)) continue;
        newest = head;
      }
      if (newest === null) return 'damaged';
      const { slotSequence: last, ...head } = newest;
      slotSequence = last;
      return head;
    },
    replace(head) {
      try {
        if (handle !== null) files.closeSync(handle);
        handle = null;
        replaceFile(files, path, [sealSlot(head, 0), sealSlot(head, 1), sealSlot(head, 2)], true);
        handle = files.openSync(path, 'r+');
        nextSlot = 1;
      } catch (error) {
        throw toFileError(error, 'writing the head', path);
      }
    },
    write(head) {
      if (handle === null) return;
      try {
        const bytes = sealSlot(head, nextSlot);
        const numWritten = files.writeSync(handle, bytes, 0, bytes.length, nextSlot * SLOT_BYTES);
        // A slot that was written in part is written again: the other one must stay whole.
        if (numWritten === bytes.length) nextSlot = nextSlot === 1 ? 2 : 1;
      } catch {
        // The head falls behind, which only means that less is noticed. The database reports the disk's errors.
      }
    },
    flush() {
      if (handle === null) return;
      try {
        files.fdatasyncSync(handle);
        flushFolder(files, folder);
      } catch {
        // As above.
      }
    },
    close() {
      const open = handle;
      handle = null;
      try {
        if (open !== null) files.closeSync(open);
      } catch {
        // As above.
      }
    },
  };
}
