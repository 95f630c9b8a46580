import { RuvLLMError } from '../core/errors.ts';

/** Pages are shared only where all of these fields are equal. */
export interface CacheNamespace {
  /** Salt of the tenant, from its credential. */
  readonly tenant: string;
  readonly modelHash: string;
  /** Hash of the adapter's content, never its name; null: none. */
  readonly adapterHash: string | null;
  /** The precision of K and V in pages. */
  readonly policy: string;
}

/** Limit of a tenant or hash, because they come from outside. */
const MAX_FIELD_BYTES = 1024;

const FIELDS = ['tenant', 'modelHash', 'adapterHash', 'policy'] as const;

/**
 * The namespace as bytes: per field its number, presence, length and UTF-8. Plain concatenation would let tenant "ab" with
 * adapter "c" read the pages of tenant "a" with adapter "bc".
 */
export function encodeNamespace(namespace: CacheNamespace): Uint8Array {
  const encoder = new TextEncoder();
  const parts = FIELDS.map((field, index) => {
    const text = namespace[field];
    // All lone surrogates encode to the same bytes: two such tenants would be one.
    if (text !== null && !isWellFormed(text)) {
      throw new RuvLLMError('invalid_option', `"${field}" is not valid Unicode`, { data: { option: field } });
    }
    const bytes = encoder.encode(text ?? '');
    if (bytes.length > MAX_FIELD_BYTES) {
      throw new RuvLLMError('invalid_option', `"${field}" has ${bytes.length} bytes, the limit is ${MAX_FIELD_BYTES}`, {
        data: { option: field, sizeBytes: bytes.length, limitBytes: MAX_FIELD_BYTES },
      });
    }
    const head = [index, text === null ? 0 : 1, bytes.length & 0xff, bytes.length >> 8];
    return Uint8Array.from([...head, ...bytes]);
  });
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    all.set(part, offset);
    offset += part.length;
  }
  return all;
}

/** `String.isWellFormed`, which the oldest supported browsers lack. */
const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

/** The namespace as a string, for maps in memory. */
export function namespaceId(namespace: CacheNamespace): string {
  return String.fromCharCode(...encodeNamespace(namespace));
}

/** Equal for namespaces of the same tenant, without decoding all of it; null for any other name. */
export function tenantKey(id: string): string | null {
  if (id.charCodeAt(0) !== 0) return null; // the number of the first field
  const length = id.charCodeAt(2) | (id.charCodeAt(3) << 8);
  return id.slice(4, 4 + length);
}

/** The namespace of such a string; null for any other name. */
export function decodeNamespace(id: string): CacheNamespace | null {
  const bytes = Uint8Array.from(id, (character) => character.charCodeAt(0));
  const decoder = new TextDecoder();
  const fields: (string | null)[] = [];
  let offset = 0;
  for (const index of FIELDS.keys()) {
    if (offset + 4 > bytes.length || bytes[offset] !== index) return null;
    const length = bytes[offset + 2]! | (bytes[offset + 3]! << 8);
    const text = decoder.decode(bytes.subarray(offset + 4, offset + 4 + length));
    fields.push(bytes[offset + 1] === 0 ? null : text);
    offset += 4 + length;
  }
  const [tenant, modelHash, adapterHash, policy] = fields as [string, string, string | null, string];
  return offset === bytes.length ? { tenant, modelHash, adapterHash, policy } : null;
}
