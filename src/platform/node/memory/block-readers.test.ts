import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BlockRead } from '../../../memory/vector-index/block-file.ts';
import { readBlocks } from './block-readers.ts';
import { bundleSources } from './compiled-sources.contract.ts';
import { openVectorFile } from './vector-file.ts';

const NUM_BLOCKS = 40;
const key = new Uint8Array(32).fill(9);
const identity = ['tenant', 'space'];
const nameOf = (block: number): string => `page ${block}`;
const bytesOf = (block: number): Uint8Array => new Uint8Array(1000 + block).fill(block + 1);

let folder = '';
let worker: URL;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-blocks-'));
  await bundleSources(folder, ['platform/node/memory/block-reader-worker.ts']);
  worker = pathToFileURL(join(folder, 'block-reader-worker.js'));
  const file = openVectorFile({ path: join(folder, 'blocks'), key, identity });
  for (let block = 0; block < NUM_BLOCKS; block++) file.write(block, nameOf(block), bytesOf(block));
  file.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const wantAll = (): BlockRead[] =>
  Array.from({ length: NUM_BLOCKS }, (_, block) => ({
    block,
    name: nameOf(block),
    into: new Uint8Array(1000 + block),
  }));

/** Reads all, this thread so slowly that others have the time to start. */
async function read(wanted: readonly BlockRead[], from: URL, pauseMs: number, path = join(folder, 'blocks')) {
  const file = openVectorFile({ path, key, identity });
  const options = { handle: openSync(path, 'r'), key, identity, numReaders: 2, worker: from };
  let numHere = 0;
  const damaged = await readBlocks(wanted, options, ({ block, name, into }) => {
    numHere++;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
    return file.read(block, name, into);
  });
  file.close();
  closeSync(options.handle);
  return { damaged, numHere };
}

test('[VI46] other threads read the same as this one', async () => {
  const wanted = wantAll();
  const { damaged, numHere } = await read(wanted, worker, 100);
  expect(damaged).toBeNull();
  expect(numHere).toBeLessThan(NUM_BLOCKS);
  for (const { block, into } of wanted) expect(into).toEqual(bytesOf(block));
});

test('[VI46] every thread detects a block of another name', async () => {
  for (const pauseMs of [0, 100]) {
    const wanted = wantAll();
    wanted[NUM_BLOCKS - 1] = { ...wanted[NUM_BLOCKS - 1]!, name: 'another page' };
    expect((await read(wanted, worker, pauseMs)).damaged).toBe(wanted[NUM_BLOCKS - 1]);
  }
});

test('[VI46] threads that cannot start, or end early, cost time only', async () => {
  const ends = "import { workerData } from 'node:worker_threads'; Atomics.add(workerData.control, 0, 3);";
  const others = [new URL('missing.js', worker), new URL(`data:text/javascript,${encodeURIComponent(ends)}`)];
  for (const other of others) {
    const wanted = wantAll();
    expect(await read(wanted, other, 20)).toEqual({ damaged: null, numHere: NUM_BLOCKS });
    for (const { block, into } of wanted) expect(into).toEqual(bytesOf(block));
  }
});

test('[VI46] a file reads many blocks with threads, few without', async () => {
  const path = join(folder, 'blocks');
  for (const from of [1, NUM_BLOCKS + 1]) {
    const file = openVectorFile({ path, key, identity, readers: { count: 2, from, worker } });
    const wanted = wantAll();
    expect(await file.readMany!(wanted)).toBeNull();
    for (const { block, into } of wanted) expect(into).toEqual(bytesOf(block));
    wanted[3] = { ...wanted[3]!, name: 'another page' };
    expect(await file.readMany!(wanted)).toBe(wanted[3]);
    file.close();
  }
});
