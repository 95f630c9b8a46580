import type { Hasher, HubPlatform } from './platform.ts';

/** What a file's bytes must hash to. Small files outside LFS are known only by their git object id. */
export interface ExpectedHash {
  readonly algorithm: 'sha256' | 'git-sha1';
  readonly hex: string;
}

/** Starts the hash that `expected` speaks of; git hashes a header with the size first. */
export function createContentHasher(platform: HubPlatform, expected: ExpectedHash, sizeBytes: number): Hasher {
  if (expected.algorithm === 'sha256') return platform.createHasher('sha256');
  const hasher = platform.createHasher('sha1');
  hasher.update(new TextEncoder().encode(`blob ${sizeBytes}\0`));
  return hasher;
}
