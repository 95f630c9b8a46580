import type { KeyObject } from 'node:crypto';
import { assert } from '../../../core/errors.ts';
import { encodeNamespace, type CacheNamespace } from '../../../kv-cache/cache-namespace.ts';
import { keyedName } from '../sealing/sealing.ts';

/** Hex digits of an HMAC-SHA-256. */
const KEY_LENGTH = 64;
const KEY = /^[0-9a-f]{64}$/;

/** The first byte of what is hashed: a root is never a child. */
const ROOT = 0;
const CHILD = 1;
const HEAD_BYTES = 1 + KEY_LENGTH + 4;

export function isPageKey(key: string): boolean {
  return KEY.test(key);
}

export function createRootKey(naming: KeyObject, namespace: CacheNamespace): string {
  return keyedName(naming, Buffer.concat([Buffer.from([ROOT]), encodeNamespace(namespace)]));
}

/**
 * Returns the function that names a page by the page before it and its own tokens. Each link of the chain needs the tenant's key:
 * the keys of pages are to be seen as file names, and with a plain hash anybody who sees two could try which tokens lead from one
 * to the other.
 */
export function createChildKeys(naming: KeyObject): (parentKey: string, tokens: ArrayLike<number>) => string {
  let buffer = Buffer.alloc(HEAD_BYTES + 4 * 64);
  return (parentKey, tokens) => {
    assert(parentKey.length === KEY_LENGTH, `a page key has ${KEY_LENGTH} characters, this one ${parentKey.length}`);
    const sizeBytes = HEAD_BYTES + 4 * tokens.length;
    if (buffer.length < sizeBytes) buffer = Buffer.alloc(sizeBytes);
    buffer[0] = CHILD;
    buffer.write(parentKey, 1, KEY_LENGTH, 'latin1');
    buffer.writeUInt32LE(tokens.length, 1 + KEY_LENGTH);
    for (let i = 0; i < tokens.length; i++) buffer.writeInt32LE(tokens[i]!, HEAD_BYTES + 4 * i);
    return keyedName(naming, buffer.subarray(0, sizeBytes));
  };
}
