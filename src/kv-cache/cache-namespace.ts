import { RuvLLMError } from '../core/errors.ts';

/** Whose pages may be shared with whom: pages are found again only where all of this is the same. */
export interface CacheNamespace {
  /** Salt of the tenant, from the credential. */
  readonly tenant: string;
  /** Hash of the model's file. */
  readonly modelHash: string;
  /** Hash of the adapter's content, never its name; null: none. */
  readonly adapterHash: string | null;
  /** How exactly pages keep K and V. */
  readonly policy: string;
}

/** Of a tenant or a hash; longer ones are refused, for they come from outside. */
const MAX_FIELD_BYTES = 1024;

const FIELDS = ['tenant', 'modelHash', 'adapterHash', 'policy'] as const;

/**
 * The namespace as bytes: for each field its number, whether it is there, its length and its UTF-8. Plain concatenation would let
 * a tenant "ab" with the adapter "c" read the pages of tenant "a" with the adapter "bc".
 */
export function encodeNamespace(namespace: CacheNamespace): Uint8Array {
  const encoder = new TextEncoder();
  const parts = FIELDS.map((field, index) => {
    const text = namespace[field];
    // All lone surrogates become the same bytes: two such tenants would be one.
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

/** `String.isWellFormed`, which is newer than the oldest browsers with what else is needed. */
const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);

/** The same as a string, for maps in memory. */
export function namespaceId(namespace: CacheNamespace): string {
  return String.fromCharCode(...encodeNamespace(namespace));
}

/** The namespace of such a string; null: it is the name of something else. */
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
