import { type HmacKey, prepareHmacKey, signHmac } from './hmac-sha256.ts';

/** Secrets have 256 random bits: they cannot be guessed, so one round of a keyed hash is enough, and fast for every request. */
const SECRET_BYTES = 32;
const SALT_BYTES = 16;
const ID_BYTES = 9;
const PREFIX = 'rvk';
const TOKEN = /^rvk_([0-9a-f]{18})_([A-Za-z0-9_-]{43})$/;

export interface NewSecret {
  readonly id: string;
  /** Sent by clients; shown once and never stored. */
  readonly token: string;
  readonly salt: string;
  readonly hash: string;
}

/** Generates a key: its id, its token, and the salted hash to store. */
export function createSecret(): NewSecret {
  const id = toHex(randomBytes(ID_BYTES));
  const secret = toBase64Url(randomBytes(SECRET_BYTES));
  const salt = toHex(randomBytes(SALT_BYTES));
  return { id, token: `${PREFIX}_${id}_${secret}`, salt, hash: hashSecret(secret, salt) };
}

/** The id and the secret of a token; null: malformed. */
export function parseToken(token: string): { readonly id: string; readonly secret: string } | null {
  const match = TOKEN.exec(token);
  return match === null ? null : { id: match[1]!, secret: match[2]! };
}

const encoder = new TextEncoder();
/** Preparing a salt is half the cost of checking a key. */
const preparedSalts = new Map<string, HmacKey>();
const MAX_PREPARED = 1000;

function prepareSalt(salt: string): HmacKey {
  const cachedKey = preparedSalts.get(salt);
  if (cachedKey !== undefined) return cachedKey;
  if (preparedSalts.size >= MAX_PREPARED) preparedSalts.clear();
  const key = prepareHmacKey(encoder.encode(salt));
  preparedSalts.set(salt, key);
  return key;
}

/** HMAC-SHA-256 of the secret under the salt of its key, in hexadecimal. */
export function hashSecret(secret: string, salt: string): string {
  return signHmac(prepareSalt(salt), encoder.encode(secret));
}

/** Compares in constant time. */
export function isSameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ (b.charCodeAt(index) || 0);
  return difference === 0;
}

function randomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
