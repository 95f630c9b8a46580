import type { KeyObject } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import type { BlockRead } from '../../../memory/vector-index/block-file.ts';
import { PAGE_BYTES } from '../../../memory/vector-index/dirty-pages.ts';

/** Layout of `control`: the next block to read, then the states of the readers' pages, two per reader. */
export const NEXT = 0;
export const numStatesBefore = 1;

export interface BlockReaderData {
  readonly handle: number;
  readonly key: KeyObject | Uint8Array;
  readonly identity: readonly string[];
  readonly blocks: Uint32Array;
  readonly names: readonly string[];
  /** Shared. State of a page: 0 free, i + 1 has block i, -(i + 1) block i is damaged. */
  readonly control: Int32Array;
  /** Shared: the opened blocks. */
  readonly pages: Uint8Array;
  readonly reader: number;
}

interface BlockReadersOptions extends Pick<BlockReaderData, 'handle' | 'key' | 'identity'> {
  readonly numReaders: number;
  /** Default: block-reader-worker.js beside this file. */
  readonly worker?: URL;
}

/**
 * Reads blocks with several threads, including this one; returns a damaged one, or null. Blocks of a thread that fails are read
 * here.
 */
export async function readBlocks(
  wanted: readonly BlockRead[],
  options: BlockReadersOptions,
  readHere: (wanted: BlockRead) => boolean,
): Promise<BlockRead | null> {
  const { handle, key, identity, numReaders } = options;
  const { worker = new URL('./block-reader-worker.js', import.meta.url) } = options;
  const numPlaces = 2 * numReaders;
  const control = new Int32Array(new SharedArrayBuffer((numStatesBefore + numPlaces) * 4));
  const pages = new Uint8Array(new SharedArrayBuffer(numPlaces * PAGE_BYTES));
  const isDone = new Uint8Array(wanted.length);
  let numDone = 0;
  let numAlive = numReaders;
  const damaged: BlockRead[] = [];

  const shared = {
    handle,
    key,
    identity,
    blocks: Uint32Array.from(wanted, ({ block }) => block),
    names: wanted.map(({ name }) => name),
    control,
    pages,
  };
  const workers = Array.from({ length: numReaders }, (_, reader) => {
    const thread = new Worker(worker, {
      name: 'ruvllm-blocks',
      execArgv: [],
      workerData: { ...shared, reader } satisfies BlockReaderData,
    });
    thread.on('error', () => {}); // followed by 'exit'
    thread.on('exit', () => numAlive--);
    return thread;
  });

  const finish = (index: number, isWhole: boolean): void => {
    if (!isWhole) damaged.push(wanted[index]!);
    isDone[index] = 1;
    numDone++;
  };
  const fetchAll = (): boolean => {
    let numFetched = 0;
    for (let place = 0; place < numPlaces; place++) {
      const state = numStatesBefore + place;
      const held = Atomics.load(control, state);
      if (held === 0) continue;
      const index = Math.abs(held) - 1;
      const { into } = wanted[index]!;
      if (held > 0) into.set(pages.subarray(place * PAGE_BYTES, place * PAGE_BYTES + into.length));
      finish(index, held > 0);
      Atomics.store(control, state, 0);
      Atomics.notify(control, state);
      numFetched++;
    }
    return numFetched > 0;
  };

  try {
    while (numDone < wanted.length && damaged.length === 0) {
      if (fetchAll()) continue;
      const index = Atomics.add(control, NEXT, 1);
      if (index < wanted.length) finish(index, readHere(wanted[index]!));
      else if (numAlive > 0) await new Promise((resolve) => void setImmediate(resolve));
      else if (!fetchAll()) {
        isDone.forEach((done, lost) => {
          if (done === 0) finish(lost, readHere(wanted[lost]!));
        });
      }
    }
    return damaged[0] ?? null;
  } finally {
    // The file is closed next: no thread may read from its handle.
    await Promise.all(workers.map((thread) => thread.terminate()));
  }
}
