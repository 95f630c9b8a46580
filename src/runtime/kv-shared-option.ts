import { RuvLLMError } from '../core/errors.ts';
import { MIN_SECRET_CHARS } from '../core/min-secret-chars.ts';
import { integerOption, optional, type OptionReader, resolveOptions, stringOption } from '../core/options.ts';

/** Storage for KV pages that several nodes use: a conversation goes on at another node without being computed again. */
export interface KvSharedConfig {
  /** A folder that all nodes mount, or `s3://bucket/prefix`. */
  place: string;
  /** The secret that all nodes share, 32 characters or more: pages are sealed with keys derived from it. */
  secret: string;
  /** Maximum bytes of all pages; the oldest are deleted first. Default 64 GiB. */
  limitBytes?: number;
  /** The longest a request waits for pages, in milliseconds. Default 2000. */
  timeoutMs?: number;
  /** Access to an `s3://` place. Default: the variables of AWS, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL. */
  s3?: KvSharedS3Config;
}

/** An S3-compatible storage; each default is a variable of AWS. */
export interface KvSharedS3Config {
  /** An http(s) address without the bucket. Default: that of AWS in the region. */
  endpoint?: string;
  /** Default us-east-1. */
  region?: string;
  accessKeyId?: string;
  secretAccessKey?: string;
  /** Of temporary credentials. */
  sessionToken?: string;
}

export interface ResolvedKvShared {
  readonly place: SharedPlaceName;
  readonly secret: string;
  readonly limitBytes: number;
  readonly timeoutMs: number;
  readonly s3: { readonly [K in keyof KvSharedS3Config]-?: string | null } | null;
}

/** A place without its access. */
export type SharedPlaceName =
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 's3'; readonly bucket: string; readonly prefix: string };

const DEFAULT_LIMIT_BYTES = 64 * 2 ** 30;
const DEFAULT_TIMEOUT_MS = 2000;
const MAX_TIMEOUT_MS = 600_000;
const MAX_PLACE_CHARS = 1024;
const S3_PLACE = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[\w.-]+\/)*[\w.-]+)?\/?)?$/i;

const placeOption: OptionReader<SharedPlaceName> = (value, name) => {
  const refuse = (expected: string): never => {
    const got = typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : typeof value;
    throw new RuvLLMError('invalid_option', `option "${name}" must be ${expected}, got ${got}`, {
      data: { option: name },
    });
  };
  if (typeof value !== 'string' || value === '' || value.includes('\0') || value.length > MAX_PLACE_CHARS) {
    return refuse('a folder or s3://bucket/prefix');
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(value)) return { type: 'folder', path: value };
  const [, bucket, prefix = ''] = S3_PLACE.exec(value) ?? [];
  if (bucket === undefined || prefix.split('/').some((part) => part === '.' || part === '..')) {
    return refuse('a folder or s3://bucket/prefix; a prefix has letters, digits and ._-/');
  }
  return { type: 's3', bucket, prefix: prefix === '' ? '' : `${prefix}/` };
};

/** The error shows the length only. */
const secretOption: OptionReader<string> = (value, name) => {
  if (typeof value === 'string' && value.length >= MIN_SECRET_CHARS) return value;
  const got = typeof value === 'string' ? `${value.length}` : typeof value;
  const message = `option "${name}" must be a text of ${MIN_SECRET_CHARS} or more characters, got ${got}`;
  throw new RuvLLMError('invalid_option', message, { data: { option: name, minChars: MIN_SECRET_CHARS } });
};

/** Reads the option; its fields are named `<name>.<field>` in errors. */
export const kvSharedOption: OptionReader<ResolvedKvShared | null> = (value, name) => {
  if (value === undefined || value === null) return null;
  const field =
    <T>(key: string, reader: OptionReader<T>): OptionReader<T> =>
    (given) =>
      reader(given, `${name}.${key}`);
  const text = (key: string) => field(`s3.${key}`, stringOption(null));
  return resolveOptions<ResolvedKvShared>(name, value as object, {
    place: field('place', placeOption),
    secret: field('secret', secretOption),
    limitBytes: field('limitBytes', integerOption(DEFAULT_LIMIT_BYTES, 0, Number.MAX_SAFE_INTEGER)),
    timeoutMs: field('timeoutMs', integerOption(DEFAULT_TIMEOUT_MS, 1, MAX_TIMEOUT_MS)),
    s3: optional((given) =>
      resolveOptions<NonNullable<ResolvedKvShared['s3']>>(`${name}.s3`, given as object, {
        endpoint: text('endpoint'),
        region: text('region'),
        accessKeyId: text('accessKeyId'),
        secretAccessKey: text('secretAccessKey'),
        sessionToken: text('sessionToken'),
      }),
    ),
  });
};
