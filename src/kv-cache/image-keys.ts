import { assert } from '../core/errors.ts';

/**
 * Stands for images where pages are looked up by tokens: every row of an image has the image's key, a negative number, which no
 * token has. Two images never have the same key, so they never share a page; the same image keeps its key while it is known.
 */
export interface ImageKeys {
  /** The key of an image with this SHA-256, in hexadecimal. */
  keyOf(hash: string): number;
  /** The tokens with the hashes of images in place of their keys, for names that outlive the process; null: one is forgotten. */
  spell(tokens: ArrayLike<number>): ArrayLike<number> | null;
}

/** About 10 MB. A forgotten image gets another key with its next use, and its old pages are evicted in time. */
const MAX_IMAGES = 1 << 16;

/** Before the words of a hash; no token is negative. */
const HASH_MARK = -1;
const WORDS = 8;
const HASH = /^[0-9a-f]{64}$/;

export function createImageKeys(maxImages = MAX_IMAGES): ImageKeys {
  const keys = new Map<string, number>();
  const hashes = new Map<number, Int32Array>();
  let last = 0;

  function forgetOldest(): void {
    for (const [hash, key] of keys) {
      if (keys.size <= maxImages) return;
      keys.delete(hash);
      hashes.delete(key);
    }
  }

  return {
    keyOf(hash) {
      assert(HASH.test(hash), `an image's hash has 64 hexadecimal digits, this one is "${hash.slice(0, 80)}"`);
      const key = keys.get(hash) ?? --last;
      assert(key >= -(2 ** 31), `${-key} images`);
      keys.delete(hash); // a Map iterates in insertion order: least recently used first
      keys.set(hash, key);
      if (!hashes.has(key)) hashes.set(key, readWords(hash));
      forgetOldest();
      return key;
    },
    spell(tokens) {
      if (!hasImages(tokens)) return tokens;
      const spelled: number[] = [];
      for (let i = 0; i < tokens.length; i++) {
        const token = tokens[i]!;
        if (token >= 0) {
          spelled.push(token);
          continue;
        }
        const words = hashes.get(token);
        if (words === undefined) return null;
        spelled.push(HASH_MARK, ...words);
      }
      return spelled;
    },
  };
}

function hasImages(tokens: ArrayLike<number>): boolean {
  for (let i = 0; i < tokens.length; i++) if (tokens[i]! < 0) return true;
  return false;
}

const readWords = (hash: string): Int32Array =>
  Int32Array.from({ length: WORDS }, (_, i) => parseInt(hash.slice(i * 8, i * 8 + 8), 16));
