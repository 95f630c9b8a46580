import { randomBytes, scryptSync } from 'node:crypto';
import { RuvLLMError } from '../../../core/errors.ts';
import { KEY_BYTES } from './sealing.ts';

/** Where the master key comes from: 32 bytes, or a passphrase that scrypt makes them of. */
export type MasterSource = { readonly key: Uint8Array } | { readonly passphrase: string };

/** Of one passphrase; not secret, kept beside what it seals. */
export interface ScryptParameters {
  readonly n: number;
  readonly r: number;
  readonly p: number;
  /** Base64, 16 bytes. */
  readonly salt: string;
}

/** 128 MiB and some tenths of a second for each guess. */
const DEFAULT_N = 2 ** 17;
/** A header from outside asks for no more: 1 GiB. */
const MAX_N = 2 ** 20;
const SALT_BYTES = 16;
const MAX_PASSPHRASE_BYTES = 1024;

/** Parameters with a salt of their own. */
export function createScryptParameters(n = DEFAULT_N): ScryptParameters {
  return { n, r: 8, p: 1, salt: randomBytes(SALT_BYTES).toString('base64') };
}

/** Null for what is none, or would cost more than it should. */
export function parseScryptParameters(value: unknown): ScryptParameters | null {
  const { n, r, p, salt } = (value ?? {}) as Partial<ScryptParameters>;
  const isPower = Number.isSafeInteger(n) && n! >= 2 && n! <= MAX_N && (n! & (n! - 1)) === 0;
  if (!isPower || r !== 8 || p !== 1 || typeof salt !== 'string') return null;
  return Buffer.from(salt, 'base64').length === SALT_BYTES ? { n: n!, r, p, salt } : null;
}

/** The key of a source; no message shows anything of what was given. */
export function masterKeyOf(source: MasterSource, parameters: ScryptParameters | null): Uint8Array {
  if ('key' in source) {
    if (source.key instanceof Uint8Array && source.key.length === KEY_BYTES) return source.key;
    throw invalid(`the master key must be ${KEY_BYTES} bytes`);
  }
  const { passphrase } = source;
  const sizeBytes = typeof passphrase === 'string' ? Buffer.byteLength(passphrase) : 0;
  if (sizeBytes === 0 || sizeBytes > MAX_PASSPHRASE_BYTES || !passphrase.isWellFormed()) {
    throw invalid(`the passphrase must have 1 to ${MAX_PASSPHRASE_BYTES} bytes of valid Unicode`);
  }
  if (parameters === null) throw invalid('a passphrase requires the parameters it was used with');
  const { n, r, p, salt } = parameters;
  // The same letters may be typed as other code points on another machine.
  return scryptSync(passphrase.normalize('NFKC'), Buffer.from(salt, 'base64'), KEY_BYTES, {
    N: n,
    r,
    p,
    maxmem: 256 * n * r,
  });
}

/** `RUVLLM_MASTER_KEY` (base64 of 32 bytes) or `RUVLLM_PASSPHRASE`; null when neither is set. */
export function masterSourceOf(environment: Readonly<Record<string, string | undefined>>): MasterSource | null {
  const { RUVLLM_MASTER_KEY: key, RUVLLM_PASSPHRASE: passphrase } = environment;
  if (key !== undefined && passphrase !== undefined) {
    throw invalid('RUVLLM_MASTER_KEY and RUVLLM_PASSPHRASE are both set; unset one of them');
  }
  if (passphrase !== undefined) return { passphrase };
  if (key === undefined) return null;
  const bytes = Buffer.from(key.trim(), 'base64');
  const isExact = bytes.toString('base64').replaceAll('=', '') === key.trim().replaceAll('=', '');
  if (!isExact || bytes.length !== KEY_BYTES) throw invalid(`RUVLLM_MASTER_KEY must be ${KEY_BYTES} bytes in base64`);
  return { key: bytes };
}

function invalid(message: string): RuvLLMError {
  return new RuvLLMError('invalid_option', message, { data: { option: 'masterKey' } });
}
