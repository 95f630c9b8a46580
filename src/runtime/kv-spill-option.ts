import { RuvLLMError } from '../core/errors.ts';
import { integerOption, type OptionReader, resolveOptions } from '../core/options.ts';

/** A folder that keeps what has no room in memory, and what shall be there after a restart, sealed. */
export interface KvSpillConfig {
  folder: string;
  /** Most bytes of pages in it; the ones not used for longest go first. Default 8 GiB. */
  limitBytes?: number;
  /** 32 bytes that seal everything in it. Default: a key of this user, made at the first use. */
  masterKey?: Uint8Array;
}

export interface ResolvedKvSpill {
  readonly folder: string;
  readonly limitBytes: number;
  /** null: the platform keeps one. */
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

/** Names no more of a value it refuses than its size: it may be the key in another form. */
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
