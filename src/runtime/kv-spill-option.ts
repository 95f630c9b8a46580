import { RuvLLMError } from '../core/errors.ts';
import { integerOption, type OptionReader, resolveOptions } from '../core/options.ts';

/** An encrypted folder for KV pages beyond the memory budget, and for sessions after a restart. */
export interface KvSpillConfig {
  folder: string;
  /** Maximum bytes of pages in the folder; the least recently used are deleted first. Default 8 GiB. */
  limitBytes?: number;
  /** The encryption key, 32 bytes. Default: a key of this user, created at the first use. */
  masterKey?: Uint8Array;
}

export interface ResolvedKvSpill {
  readonly folder: string;
  readonly limitBytes: number;
  /** null: the platform's key. */
  readonly masterKey: Uint8Array | null;
}

const DEFAULT_LIMIT_BYTES = 8 * 2 ** 30;
const KEY_BYTES = 32;

const folderOption: OptionReader<string> = (value, name) => {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return value;
  const got = typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
  throw new RuvLLMError('invalid_option', `option "${name}" must be the path of a folder, got ${got}`, {
    data: { option: name },
  });
};

/** The error shows only the size of a wrong value: it may be the key in another form. */
const masterKeyOption: OptionReader<Uint8Array | null> = (value, name) => {
  if (value === undefined || value === null) return null;
  if (value instanceof Uint8Array && value.length === KEY_BYTES) return value;
  const got = value instanceof Uint8Array ? `${value.length}` : typeof value;
  throw new RuvLLMError('invalid_option', `option "${name}" must be a Uint8Array of ${KEY_BYTES} bytes, got ${got}`, {
    data: { option: name },
  });
};

/** Reads the option; its fields are named `<name>.<field>` in errors. */
export const kvSpillOption: OptionReader<ResolvedKvSpill | null> = (value, name) => {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new RuvLLMError('invalid_option', `option "${name}" must be null or { folder }, got ${typeof value}`, {
      data: { option: name },
    });
  }
  const field =
    <T>(key: string, reader: OptionReader<T>): OptionReader<T> =>
    (given) =>
      reader(given, `${name}.${key}`);
  return resolveOptions<ResolvedKvSpill>(name, value, {
    folder: field('folder', folderOption),
    limitBytes: field('limitBytes', integerOption(DEFAULT_LIMIT_BYTES, 0, Number.MAX_SAFE_INTEGER)),
    masterKey: field('masterKey', masterKeyOption),
  });
};
