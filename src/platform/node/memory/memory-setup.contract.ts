// What tests of the memory on disk share: a folder for each test, stores that are closed when it is over.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { createBruteForce } from '../../../memory/store/brute-force.contract.ts';
import { START_MS } from '../../../memory/store/store-setup.contract.ts';
import { findNodeSqlite } from './node-sqlite.ts';
import { openMemoryStore, type MemoryStoreFolderOptions, type OpenedMemoryStore } from './open-memory-store.ts';

let root: string;
let numFolders = 0;
const opened = new Set<OpenedMemoryStore>();
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-memory-'))));
afterEach(async () => {
  for (const { store } of opened) await store.close().catch(() => {});
  opened.clear();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

export const masterKey = { key: new Uint8Array(32).fill(7) };
export const newFolder = (): string => join(root, `folder-${numFolders++}`);

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
