import { RuvLLMError } from '../../../core/errors.ts';
import { openFolder, readJson, writeJson } from '../files/model-folder.ts';
import { toStorageError } from '../files/storage-errors.ts';

/** OWASP's figure of 2023 for PBKDF2 with HMAC-SHA-256. */
const ITERATIONS = 600_000;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const DATABASE = 'ruvllm';
const STORE = 'keys';
const DEVICE_KEY = 'device';
const PASSPHRASE_FILE = 'passphrase.json';

/** Seals pages and memory in the storage of a page. The page itself cannot read its bytes. */
export interface SealingKey {
  /** A base key of HKDF, not extractable. */
  readonly key: CryptoKey;
}

const toBytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);
const toBase64 = (bytes: Uint8Array): string => btoa(String.fromCharCode(...bytes));

function fromBase64(text: unknown): Uint8Array<ArrayBuffer> | null {
  try {
    return typeof text === 'string' ? Uint8Array.from(atob(text), (char) => char.charCodeAt(0)) : null;
  } catch {
    return null;
  }
}

const importSecret = (secret: BufferSource): Promise<CryptoKey> =>
  crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveKey', 'deriveBits']);

/** The key of one purpose, such as one file. */
export function deriveSealing(base: CryptoKey, salt: BufferSource, purpose: string): Promise<CryptoKey> {
  const hkdf = { name: 'HKDF', hash: 'SHA-256', salt, info: toBytes(purpose) };
  return crypto.subtle.deriveKey(hkdf, base, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
}

/**
 * A random key that this browser keeps for this page (IndexedDB) and that cannot be exported. It protects copies of the storage,
 * not against scripts of the same page or people at this computer: for those, use `openPassphraseKey`.
 */
export async function openDeviceKey(): Promise<SealingKey> {
  const created = await importSecret(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  try {
    return { key: await readOrAddKey(created) };
  } catch (error) {
    throw toStorageError(error, 'opening the key of this browser');
  }
}

/** In one transaction: two tabs at their first start must not make two keys. */
async function readOrAddKey(created: CryptoKey): Promise<CryptoKey> {
  const opening = indexedDB.open(DATABASE, 1);
  opening.addEventListener('upgradeneeded', () => opening.result.createObjectStore(STORE));
  const database = await settle(opening);
  try {
    const store = database.transaction(STORE, 'readwrite').objectStore(STORE);
    const existing = (await settle(store.get(DEVICE_KEY))) as CryptoKey | undefined;
    if (existing !== undefined) return existing;
    await settle(store.add(created, DEVICE_KEY));
    return created;
  } finally {
    database.close();
  }
}

function settle<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener('success', () => resolve(request.result));
    request.addEventListener('error', () => reject(request.error ?? new Error('the request failed')));
  });
}

/** A key from a passphrase, with a salt that the storage of this page keeps. `invalid_option` for another passphrase than at first. */
export async function openPassphraseKey(passphrase: string): Promise<SealingKey> {
  if (typeof passphrase !== 'string' || passphrase === '') {
    throw new RuvLLMError('invalid_option', 'a passphrase must have at least one character');
  }
  const folder = await openFolder();
  const record = await readJson(folder, PASSPHRASE_FILE);
  const salt = fromBase64(record?.['salt']) ?? crypto.getRandomValues(new Uint8Array(SALT_BYTES));
  const iterations = typeof record?.['iterations'] === 'number' ? record['iterations'] : ITERATIONS;
  const base = await crypto.subtle.importKey('raw', toBytes(passphrase.normalize('NFC')), 'PBKDF2', false, [
    'deriveBits',
  ]);
  const pbkdf2 = { name: 'PBKDF2', hash: 'SHA-256', salt, iterations };
  const key = await importSecret(await crypto.subtle.deriveBits(pbkdf2, base, 8 * KEY_BYTES));
  const info = toBytes('recognise the passphrase');
  const bits = await crypto.subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt, info }, key, 8 * KEY_BYTES);
  const check = toBase64(new Uint8Array(bits));
  if (record === null) await writeJson(folder, PASSPHRASE_FILE, { salt: toBase64(salt), iterations, check });
  else if (record['check'] !== check) {
    throw new RuvLLMError('invalid_option', 'the passphrase is not the one that this page was set up with');
  }
  return { key };
}
