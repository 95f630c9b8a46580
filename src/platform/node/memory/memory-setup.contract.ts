// What tests of the memory on disk share: a folder for each test, stores that are closed when it is over.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEveryTest } from '../../../../test/support/after-tests.ts';
import { createTemporaryRoot } from '../../../../test/support/temporary-root.ts';
import { createBruteForce } from '../../../memory/store/brute-force.contract.ts';
import { START_MS } from '../../../memory/store/store-setup.contract.ts';
import { findNodeSqlite } from './node-sqlite.ts';
import { openWasmSqlite } from './wasm-sqlite.ts';
import {
  openMemoryStore,
  type MemoryStoreFolderOptions,
  type OpenedMemoryStore,
} from '../../../node/memory/open-memory-store.ts';

const opened = new Set<OpenedMemoryStore>();
afterEveryTest(async () => {
  for (const { store } of opened) await store.close().catch(() => {});
  opened.clear();
});

export const masterKey = { key: new Uint8Array(32).fill(7) };
export const { newFolder } = createTemporaryRoot('ruvllm-memory-');

/** The cheapest scrypt: its cost is not what is tested. */
export const CHEAP_SCRYPT = 16;

export const DRIVERS = (['wasm', 'node'] as const).filter((driver) => {
  const isThere = driver === 'wasm' || findNodeSqlite() !== null;
  if (!isThere)
    console.log(`node:sqlite is not in Node ${process.versions.node}: tested with the driver in WebAssembly only`);
  return isThere;
});

export function openAt(folder: string, options: Partial<MemoryStoreFolderOptions> = {}): OpenedMemoryStore {
  const memory = openMemoryStore({
    folder,
    masterKey,
    createIndex: createBruteForce,
    now: () => START_MS,
    scryptN: CHEAP_SCRYPT,
    ...options,
  });
  opened.add(memory);
  return memory;
}

/** Every file by its path, with its bytes. */
export function contentsOf(folder: string): Map<string, Buffer> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  const paths = names.map((name) => join(folder, name)).filter((path) => statSync(path).isFile());
  return new Map(paths.map((path) => [relative(folder, path), readFileSync(path)]));
}

/** The same in short: whether anything was touched. */
export function hashesOf(folder: string): Map<string, string> {
  const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  return new Map([...contentsOf(folder)].map(([name, bytes]) => [name, hash(bytes)]));
}

/** The database as it lies there, past the store. */
export function changeDatabase(folder: string, sql: string): void {
  const database = openWasmSqlite(join(folder, 'memory.db'), () => false);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec(sql);
  } finally {
    database.close();
  }
}
