// What tests of the spill folder share: a folder for each test, pages and tokens made of numbers.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createTemporaryRoot } from '../../../../test/support/temporary-root.ts';
import type { CacheNamespace } from '../../../kv-cache/cache-namespace.ts';
import type { SpillSpace } from '../../../kv-cache/types.ts';
import { OVERHEAD_BYTES } from '../sealing/sealed-file.ts';
import { openSpillFolder, type SpillFolderOptions } from './spill-folder.ts';

export const masterKey = new Uint8Array(32).fill(7);
export const { newFolder } = createTemporaryRoot('ruvllm-spill-');
export const openAt = (folder: string, options: Partial<SpillFolderOptions> = {}) =>
  openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey, ...options });
export const NAMESPACE: CacheNamespace = {
  tenant: 'tenant-alpha',
  modelHash: 'model-1',
  adapterHash: null,
  policy: 'f16',
};

export const PAGE_BYTES = 1000;
export const FILE_BYTES = PAGE_BYTES + OVERHEAD_BYTES;
export const pageOf = (seed: number, length = PAGE_BYTES): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (seed * 31 + i * 7 + (i >> 3)) & 0xff);
export const tokensOf = (seed: number): Int32Array => Int32Array.from({ length: 16 }, (_, i) => seed * 1000 + i);

/** `count` pages behind each other, each written with its number as the seed. */
export function writeChain(space: SpillSpace, count: number): string[] {
  const keys: string[] = [];
  for (let i = 0; i < count; i++) {
    keys.push(space.childKey(keys.at(-1) ?? space.rootKey, tokensOf(i)));
    expect(space.write(keys[i]!, 'float', pageOf(i))).toBe(true);
  }
  return keys;
}
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .sort();
export const pathOf = (folder: string, key: string): string =>
  filesIn(folder).find((path) => path.endsWith(`${key}.page`))!;
