// Reads and opens blocks in another thread: started by block-readers.ts, ends when no blocks are left.
import * as files from 'node:fs';
import { workerData } from 'node:worker_threads';
import { PAGE_BYTES } from '../../../memory/vector-index/dirty-pages.ts';
import { frame } from '../sealing/sealing.ts';
import { type BlockReaderData, NEXT, numStatesBefore } from './block-readers.ts';
import { openBlock, readFully, STORED_BYTES } from './stored-block.ts';

const { handle, key, identity, blocks, names, control, pages, reader } = workerData as BlockReaderData;
const stored = Buffer.allocUnsafeSlow(STORED_BYTES);

function read(index: number, into: Uint8Array): boolean {
  const block = blocks[index]!;
  if (readFully(files, handle, stored, block * STORED_BYTES) < STORED_BYTES) return false;
  return openBlock(key, stored, frame(...identity, String(block), names[index]!), into);
}

for (let turn = 0; ; turn ^= 1) {
  const index = Atomics.add(control, NEXT, 1);
  if (index >= blocks.length) break;
  const place = 2 * reader + turn;
  const state = numStatesBefore + place;
  // Waits until the previous page was fetched.
  for (let held = Atomics.load(control, state); held !== 0; held = Atomics.load(control, state)) {
    Atomics.wait(control, state, held);
  }
  const isWhole = read(index, pages.subarray(place * PAGE_BYTES, (place + 1) * PAGE_BYTES));
  Atomics.store(control, state, isWhole ? index + 1 : -(index + 1));
}
