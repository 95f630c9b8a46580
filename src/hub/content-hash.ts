import type { Hasher, HubPlatform } from './platform.ts';

/** The expected hash of a file. Small files outside LFS have only a git object id. */
export interface ExpectedHash {
  readonly algorithm: 'sha256' | 'git-sha1';
  readonly hex: string;
}

/** Creates the hasher for `expected`; git hashes a header with the size first. */
export function createContentHasher(platform: HubPlatform, expected: ExpectedHash, sizeBytes: number): Hasher {
  if (expected.algorithm === 'sha256') return platform.createHasher('sha256');
  const hasher = platform.createHasher('sha1');
  hasher.update(new TextEncoder().encode(`blob ${sizeBytes}\0`));
  return hasher;
}
