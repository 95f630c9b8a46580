import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import * as nodeFiles from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clustered, flat, wasm } from '../../../memory/vector-index/index-fixture.contract.ts';
import { createHnswIndex, openVectorIndex } from '../../../memory/vector-index/create-index.ts';
import { openVectorFile } from './vector-file.ts';

let folder = '';
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'ruvllm-vectors-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const key = new Uint8Array(32).fill(9);
const identity = ['tenant', 'document', 'space'];
const options = { kernels: wasm, dim: 64, m: 4, efConstruction: 20 };
const vectors = clustered(300, 64, 31);

test('[VI40] [VI45] sealed on disk: opens again, with nothing of the vectors to be seen', async () => {
  const path = join(folder, 'new', 'folder', 'a.vec');
  const file = openVectorFile({ path, key, identity });
  const index = await createHnswIndex(options);
  await index.addMany(vectors.map((_, i) => i + 1), flat(vectors)); // prettier-ignore
  index.save(file, 4);
  file.close();
  expect(() => file.flush()).toThrowError(expect.objectContaining({ code: 'io' }));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const bytes = readFileSync(path);
  expect(bytes.includes(Buffer.from(index.get(1)!.buffer, 0, 16))).toBe(false);
  expect(bytes.includes('ruvllm')).toBe(false);

  const again = openVectorFile({ path, key, identity });
  const opened = (await openVectorIndex(options, again))!;
  expect(opened.seq).toBe(4);
  const query = { vector: vectors[9]!, k: 20 };
  expect(opened.index.search(query)).toEqual(index.search(query));
  again.close();

  const refused = { code: 'hash_mismatch' };
  const others = [{ key: new Uint8Array(32) }, { identity: ['tenant', 'documents', 'pace'] }];
  for (const other of others) {
    const wrong = openVectorFile({ path, key, identity, ...other });
    await expect(openVectorIndex(options, wrong)).rejects.toMatchObject(refused);
    wrong.close();
  }
  for (const at of [20, 300_000, bytes.length - 1]) {
    const damaged = Buffer.from(bytes);
    damaged[at]! ^= 1;
    const copy = join(folder, 'damaged.vec');
    writeFileSync(copy, damaged);
    const wrong = openVectorFile({ path: copy, key, identity });
    // The older of two headers; the newer: as if this had never been saved; a page.
    if (at === 20) expect((await openVectorIndex(options, wrong))!.seq).toBe(4);
    else if (at === 300_000) expect(await openVectorIndex(options, wrong)).toBeNull();
    else await expect(openVectorIndex(options, wrong)).rejects.toMatchObject(refused);
    wrong.close();
  }
  truncateSync(path, bytes.length - 1);
  const short = openVectorFile({ path, key, identity });
  await expect(openVectorIndex(options, short)).rejects.toMatchObject(refused);
  short.close();
  await opened.index.dispose();
  await index.dispose();
});

test('short writes are completed; a full disk is said, and the old index is still there', async () => {
  const path = join(folder, 'full.vec');
  let left = Infinity;
  const files = {
    ...nodeFiles,
    writeSync(handle: number, bytes: Uint8Array, offset: number, length: number, position: number) {
      const most = Math.min(length, 100_000, left);
      if (most === 0) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
      left -= most;
      return nodeFiles.writeSync(handle, bytes, offset, most, position);
    },
  } as typeof nodeFiles;
  const index = await createHnswIndex(options);
  await index.addMany(vectors.map((_, i) => i + 1), flat(vectors)); // prettier-ignore
  const file = openVectorFile({ path, key, identity, files });
  index.save(file, 1);
  for (let room = 0; room < 1e6; room += 150_000) {
    left = room;
    await index.add(1000 + room, vectors[room / 150_000]!.map((value) => -value)); // prettier-ignore
    expect(() => index.save(file, 2)).toThrowError(expect.objectContaining({ code: 'disk_full' }));
    const old = openVectorFile({ path, key, identity });
    const opened = (await openVectorIndex(options, old))!;
    expect([opened.seq, opened.index.size]).toEqual([1, 300]);
    await opened.index.dispose();
    old.close();
  }
  left = Infinity;
  index.save(file, 3);
  file.close();
  const again = openVectorFile({ path, key, identity });
  expect((await openVectorIndex(options, again))!.index.size).toBe(index.size);
  again.close();
  await index.dispose();
});
