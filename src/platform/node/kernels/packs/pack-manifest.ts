import type { KeyObject } from 'node:crypto';
import { RuvLLMError } from '../../../../core/errors.ts';
import { findKeyProblem, findSignatureProblem, isSignedBy, publicKeyText, signBytes } from '../../signing/ed25519.ts';

/** The file that describes a kernel pack. */
export const MANIFEST_NAME = 'ruvllm-kernels.json';
const FORMAT = 'ruvllm-kernels/1';

const NAME = /^[a-z0-9][a-z0-9-]{0,63}$/;
const VERSION = /^\d+\.\d+\.\d+(-[0-9a-z.-]{1,32})?$/;
/** Files lie in the folder itself. */
const FILE_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
const SHA256 = /^[0-9a-f]{64}$/;
const MAX_FILES = 64;

/** The signed part of a manifest. */
export interface PackContents {
  readonly name: string;
  readonly version: string;
  /** The ES module that exports `createKernelPackFactory`. */
  readonly entry: string;
  /** SHA-256 of each file, in hexadecimal. */
  readonly files: Readonly<Record<string, string>>;
}

export interface PackManifest extends PackContents {
  /** Ed25519; both in base64. */
  readonly signature: { readonly key: string; readonly value: string };
}

function invalid(reason: string): RuvLLMError {
  return new RuvLLMError('invalid_option', `${MANIFEST_NAME}: ${reason}`, { data: { file: MANIFEST_NAME } });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function requireKeys(value: unknown, what: string, keys: readonly string[]): Record<string, unknown> {
  if (!isObject(value)) throw invalid(`${what} must be an object`);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw invalid(`${what} has the unknown field ${JSON.stringify(unknown)}`);
  const missing = keys.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) throw invalid(`${what} has no field ${JSON.stringify(missing)}`);
  return value;
}

function readText(value: unknown, what: string, pattern: RegExp): string {
  if (typeof value !== 'string' || !pattern.test(value)) {
    throw invalid(`${what} must match ${pattern}, got ${JSON.stringify(value)?.slice(0, 100)}`);
  }
  return value;
}

function readEncoded(value: unknown, what: string, problem: string | null): string {
  if (problem !== null) throw invalid(`${what} ${problem}`);
  return value as string;
}

export function readContents(value: unknown): PackContents {
  const { name, version, entry, files } = requireKeys(value, 'the pack', ['name', 'version', 'entry', 'files']);
  if (!isObject(files)) throw invalid('"files" must be an object');
  const names = Object.keys(files);
  if (names.length > MAX_FILES) throw invalid(`"files" has ${names.length} entries, the limit is ${MAX_FILES}`);
  for (const file of names) {
    readText(file, 'a file name', FILE_NAME);
    readText(files[file], `the hash of ${file}`, SHA256);
  }
  if (typeof entry !== 'string' || !Object.hasOwn(files, entry)) {
    throw invalid(`"entry" must be one of the files, got ${JSON.stringify(entry)?.slice(0, 100)}`);
  }
  return {
    name: readText(name, '"name"', NAME),
    version: readText(version, '"version"', VERSION),
    entry,
    files: files as Record<string, string>,
  };
}

/** Checks the form of a manifest, not its signature. */
export function readManifest(value: unknown): PackManifest {
  const { format, signature, ...contents } = requireKeys(value, 'the manifest', [
    'format',
    'name',
    'version',
    'entry',
    'files',
    'signature',
  ]);
  if (format !== FORMAT) throw invalid(`"format" must be ${FORMAT}, got ${JSON.stringify(format)?.slice(0, 100)}`);
  const signed = requireKeys(signature, '"signature"', ['key', 'value']);
  return {
    ...readContents(contents),
    signature: {
      key: readEncoded(signed['key'], 'the public key', findKeyProblem(signed['key'])),
      value: readEncoded(signed['value'], 'the signature', findSignatureProblem(signed['value'])),
    },
  };
}

/** The bytes that are signed: independent of the order and spacing of the manifest. */
function signedBytes({ name, version, entry, files }: PackContents): Buffer {
  const sorted = Object.entries(files).sort(([a], [b]) => (a < b ? -1 : 1));
  return Buffer.from(`${FORMAT}\n${JSON.stringify([name, version, entry, sorted])}`);
}

export function hasValidSignature(manifest: PackManifest): boolean {
  const { key, value } = manifest.signature;
  return isSignedBy(key, signedBytes(manifest), value);
}

/** The text of a manifest, signed with an Ed25519 key. */
export function writeManifest(contents: PackContents, privateKey: KeyObject): string {
  const checked = readContents(contents);
  const signature = { key: publicKeyText(privateKey), value: signBytes(privateKey, signedBytes(checked)) };
  return `${JSON.stringify({ format: FORMAT, ...checked, signature }, null, 2)}\n`;
}
