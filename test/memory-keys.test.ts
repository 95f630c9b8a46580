// Another master key while the memory works in its own thread, as the built package opens it.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Memory } from '../src/memory/memory.ts';
import { auditInput } from '../src/memory/audit/harness.contract.ts';
import type { OpenMemoryOptions } from '../src/node/memory/open-memory.ts';
import type { TestServer } from '../src/platform/node/memory/postgres-server.contract.ts';
import { startPglite } from '../src/platform/node/memory/postgres-setup.contract.ts';
import { importDist } from './support/import-dist.ts';

const { openNodeMemory } =
  await importDist<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory.js');
const { operationOf } =
  await importDist<typeof import('../src/memory/operations/index.ts')>('memory/operations/index.js');

let root: string;
let server: TestServer;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'ruvllm-memory-keys-'));
  server = await startPglite();
});
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

const keyOf = (byte: number): Buffer => Buffer.alloc(32, byte);
const NUM_WRITERS = 4;
const NUM_ROTATIONS = 5;
/** Everything leaves the store for the archive with the next retention. */
const options: Partial<OpenMemoryOptions> = { modelPath: null, audit: { batchMs: 5 }, retention: { maxBytes: 0 } };

interface Load {
  readonly added: Map<string, string>;
  numEntries: number;
  longestMs: number;
}

/** Adds, reads, logs and archives until `isOver`; a call that fails is the test's failure. */
async function write(memory: Memory, writer: number, load: Load, isOver: () => boolean): Promise<void> {
  for (let i = 0; !isOver(); i++) {
    const tenant = i % 3 === 0 ? `new ${writer} ${i}` : 'old'; // a key of its own for each third
    const startMs = performance.now();
    const id = await memory.add(tenant, { text: `text ${writer} ${i}` });
    load.longestMs = Math.max(load.longestMs, performance.now() - startMs);
    load.added.set(id, tenant);
    expect(await memory.get(tenant, id)).toMatchObject({ text: `text ${writer} ${i}` });
    if (await memory.audit.enqueue('old', auditInput({ query: `${writer} ${i}`, queryEmbedding: null, space: null }))) load.numEntries++; // prettier-ignore
    if (i % 10 === 9) await memory.audit.retain('old');
  }
}

async function expectWhole(place: string, load: Load): Promise<void> {
  const open = (byte: number): Promise<Memory> =>
    openNodeMemory({ place, masterKey: { key: keyOf(byte) }, ...options });
  for (const byte of [1, NUM_ROTATIONS]) await expect(open(byte)).rejects.toMatchObject({ code: 'invalid_option' });
  const again = await open(1 + NUM_ROTATIONS);
  try {
    for (const [id, tenant] of load.added) expect(await again.get(tenant, id)).not.toBeNull();
    await again.audit.retain('old');
    expect(await again.audit.verify('old')).toMatchObject({ brokenAt: null, numChecked: load.numEntries, numArchived: load.numEntries }); // prettier-ignore
    await again.store.checkIntegrity();
  } finally {
    await again.close();
  }
}

const rotate = async (memory: Memory, byte: number): Promise<void> => {
  const input = { key: keyOf(byte).toString('base64') };
  expect(await operationOf('memory.rotate-key').run(memory, 'old', input)).toEqual({ isRotated: true });
};

test('[MS23] [WL11] a folder: rotated through the operation under load, no call fails and nothing is lost', async () => {
  const place = join(root, 'folder');
  const memory = await openNodeMemory({ place, masterKey: { key: keyOf(1) }, ...options });
  const load: Load = { added: new Map(), numEntries: 0, longestMs: 0 };
  let isOver = false;
  const writing = Promise.allSettled(Array.from({ length: NUM_WRITERS }, (_, i) => write(memory, i, load, () => isOver))); // prettier-ignore
  try {
    for (let byte = 2; byte < 2 + NUM_ROTATIONS; byte++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await rotate(memory, byte);
    }
  } finally {
    isOver = true;
    const outcomes = await writing;
    await memory.close();
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
  }
  console.log(`${NUM_ROTATIONS} rotations during ${load.added.size} added records and ${load.numEntries} entries, longest call ${load.longestMs.toFixed(0)} ms`); // prettier-ignore
  await expectWhole(place, load);
  expect(readdirSync(join(place, 'archive')).length).toBeGreaterThan(0);
});

// The server in WebAssembly has one session: statements of two at once would be mixed up by it, so one waits for the other.
test('[PG12] [PG13] PostgreSQL: rotated through the operation between writes, with an archive', async () => {
  const place = server.connectionString;
  const memory = await openNodeMemory({
    place,
    masterKey: { key: keyOf(1) },
    ...options,
    audit: { batchMs: 3_600_000 },
  });
  const load: Load = { added: new Map(), numEntries: 0, longestMs: 0 };
  try {
    for (let byte = 2; byte < 2 + NUM_ROTATIONS; byte++) {
      let numLeft = 4;
      await write(memory, byte, load, () => numLeft-- === 0);
      await memory.audit.flush();
      expect((await memory.audit.retain('old')).numSegments).toBe(1);
      await rotate(memory, byte);
    }
  } finally {
    await memory.close();
  }
  await expectWhole(place, load);
});
