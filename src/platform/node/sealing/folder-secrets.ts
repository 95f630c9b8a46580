import { randomBytes } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { toFileError } from '../files/file-errors.ts';
import { createFileOnce, makeFolder, readWhole, replaceFile, type Files } from './atomic-files.ts';
import { checkValueOf, derivePurpose } from './key-ring.ts';
import {
  createScryptParameters,
  masterKeyOf,
  parseScryptParameters,
  type MasterSource,
  type ScryptParameters,
} from './master-source.ts';
import { openFile, sealFile } from './sealed-file.ts';
import { KEY_BYTES } from './sealing.ts';

/** The secrets of one folder, sealed in its header by the master key. */
export interface FolderSecrets {
  /** Names tenants; the same for as long as the folder lives. */
  readonly naming: Uint8Array;
  /** Wraps the keys of tenants. */
  readonly wrapping: Uint8Array;
  /** The one before, while keys are wrapped anew. */
  readonly previous: Uint8Array | null;
}

interface Header {
  readonly version: number;
  readonly check: string;
  readonly scrypt: ScryptParameters | null;
  readonly secrets: string;
}

export interface HeaderOptions {
  /** What this code writes, and the newest it reads. */
  readonly version: number;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
}

/** Many times what we write: something longer is not ours. */
const MAX_HEADER_BYTES = 4096;

/** Makes a header with fresh secrets, unless there is one. */
export function createFolderSecrets(files: Files, path: string, source: MasterSource, options: HeaderOptions): void {
  const secrets = { naming: randomBytes(KEY_BYTES), wrapping: randomBytes(KEY_BYTES), previous: null };
  try {
    makeFolder(files, dirname(path), true);
    createFileOnce(files, path, encodeHeader(path, source, secrets, options));
    copyHeader(files, path);
  } catch (error) {
    throw toFileError(error, 'writing the header', path);
  }
}

/** Puts the header of another master key or other secrets in the place of the old one, at once or not at all. */
export function replaceFolderSecrets(
  files: Files,
  path: string,
  source: MasterSource,
  secrets: FolderSecrets,
  options: HeaderOptions,
): void {
  try {
    replaceFile(files, path, [encodeHeader(path, source, secrets, options)], true);
    copyHeader(files, path);
  } catch (error) {
    throw toFileError(error, 'writing the header', path);
  }
}

/** Without the header nothing of the folder can be read, so there are two of it. */
export const headerCopyOf = (path: string): string => `${path}.copy`;

function copyHeader(files: Files, path: string): void {
  const bytes = readWhole(files, path, MAX_HEADER_BYTES);
  const copy = readQuietly(files, headerCopyOf(path));
  if (bytes !== null && (copy === null || Buffer.compare(bytes, copy) !== 0)) {
    replaceFile(files, headerCopyOf(path), [bytes], true);
  }
}

function readQuietly(files: Files, path: string): Uint8Array | null {
  try {
    return readWhole(files, path, MAX_HEADER_BYTES);
  } catch {
    return null;
  }
}

/** Looks at the version and the key before anything else is read, and changes nothing. A damaged header is read from its copy. */
export function openFolderSecrets(
  files: Files,
  path: string,
  source: MasterSource,
  options: HeaderOptions,
): FolderSecrets {
  try {
    return openHeader(readHeader(files, path), path, source, options);
  } catch (error) {
    const copy = readQuietly(files, headerCopyOf(path));
    if (copy === null || !(error instanceof RuvLLMError) || error.code === 'unsupported') throw error;
    try {
      return openHeader(copy, path, source, options);
    } catch {
      throw error;
    }
  }
}

/** Of the folder's owner: replaces a damaged header by its copy, and the other way around. Returns what was damaged. */
export function repairHeader(files: Files, path: string, source: MasterSource, options: HeaderOptions): string | null {
  const opens = (bytes: Uint8Array | null): boolean => {
    try {
      openHeader(bytes, path, source, options);
      return true;
    } catch {
      return false;
    }
  };
  try {
    const [bytes, copy] = [readQuietly(files, path), readQuietly(files, headerCopyOf(path))];
    if (opens(bytes)) {
      copyHeader(files, path);
      return null;
    }
    if (!opens(copy)) return null; // opening it says why
    replaceFile(files, path, [copy!], true);
    return `${path} was damaged and is restored from its copy`;
  } catch (error) {
    throw toFileError(error, 'writing the header', path);
  }
}

/** The same for a header that is kept somewhere else; `path` is its name, and the same for as long as it lives. */
export function openHeader(
  bytes: Uint8Array | null,
  path: string,
  source: MasterSource,
  { version }: HeaderOptions,
): FolderSecrets {
  const header = parseHeader(bytes);
  if (header === null) throw new RuvLLMError('io', `${path} is not a RuvLLM header`, { data: { path } });
  if (header.version > version) {
    throw new RuvLLMError(
      'unsupported',
      `${path} has version ${header.version}; this release reads version ${version}`,
      {
        data: { path, version: header.version, knownVersion: version },
      },
    );
  }
  if (header.check === '') throw new RuvLLMError('io', `${path} is not a RuvLLM header`, { data: { path } });
  if ('passphrase' in source !== (header.scrypt !== null)) {
    const expected = header.scrypt === null ? 'a master key, not a passphrase' : 'a passphrase, not a master key';
    throw new RuvLLMError('invalid_option', `${path} requires ${expected}`, { data: { option: 'masterKey' } });
  }
  const masterKey = masterKeyOf(source, header.scrypt);
  if (checkValueOf(masterKey) !== header.check) {
    throw new RuvLLMError('invalid_option', `${path} is encrypted with another master key`, {
      data: { option: 'masterKey' },
    });
  }
  const secrets = decodeSecrets(openFile(placeOf(path, masterKey), Buffer.from(header.secrets, 'base64'))?.bytes);
  if (secrets === null)
    throw new RuvLLMError('io', `${path} is damaged: its secrets cannot be decrypted`, { data: { path } });
  return secrets;
}

const placeOf = (path: string, masterKey: Uint8Array) =>
  ({ kind: 'secrets', key: derivePurpose(masterKey, 'seal the secrets of a folder'), name: basename(path) }) as const;

export function encodeHeader(
  path: string,
  source: MasterSource,
  secrets: FolderSecrets,
  options: HeaderOptions,
): Uint8Array {
  const scrypt = 'passphrase' in source ? createScryptParameters(options.scryptN) : null;
  const masterKey = masterKeyOf(source, scrypt);
  const plain = Buffer.concat([secrets.naming, secrets.wrapping, secrets.previous ?? Buffer.alloc(0)]);
  const sealed = Buffer.concat(sealFile(placeOf(path, masterKey), 0, plain)).toString('base64');
  const header: Header = { version: options.version, check: checkValueOf(masterKey), scrypt, secrets: sealed };
  return Buffer.from(`${JSON.stringify(header)}\n`);
}

function decodeSecrets(plain: Uint8Array | undefined): FolderSecrets | null {
  if (plain === undefined || (plain.length !== 2 * KEY_BYTES && plain.length !== 3 * KEY_BYTES)) return null;
  const [naming, wrapping, previous] = [0, 1, 2].map((i) => plain.subarray(i * KEY_BYTES, (i + 1) * KEY_BYTES));
  return { naming: naming!, wrapping: wrapping!, previous: previous!.length === 0 ? null : previous! };
}

function readHeader(files: Files, path: string): Uint8Array | null {
  try {
    return readWhole(files, path, MAX_HEADER_BYTES);
  } catch (error) {
    throw toFileError(error, 'reading the header', path);
  }
}

function parseHeader(bytes: Uint8Array | null): Header | null {
  try {
    const { version, check, scrypt, secrets } = JSON.parse(
      new TextDecoder().decode(bytes ?? undefined),
    ) as Partial<Header>;
    if (!Number.isSafeInteger(version) || version! < 1) return null;
    // Of a newer version nothing else is known.
    const parameters = parseScryptParameters(scrypt);
    const isRight =
      typeof check === 'string' && typeof secrets === 'string' && (scrypt === null || parameters !== null);
    if (!isRight) return { version: version!, check: '', scrypt: null, secrets: '' };
    return { version: version!, check, scrypt: parameters, secrets };
  } catch {
    return null;
  }
}
