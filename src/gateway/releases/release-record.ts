import { RuvLLMError } from '../../core/errors.ts';
import type { FleetKeys } from '../../server/fleet/fleet-keys.ts';

/** An adapter as its publisher has signed it. */
export interface PublishedAdapter {
  readonly model: string;
  readonly name: string;
  /** Of its file, in hexadecimal; also the name of the file in the store. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** Hash of the model file that it was prepared with; empty: not prepared yet. */
  readonly modelHash: string;
  /** Ed25519 key of the publisher, and its signature of `signedBytes`; both in base64. */
  readonly key: string;
  readonly signature: string;
}

/** All published adapters at one time. */
export interface Release {
  /** Rises with each release, also after a store has lost its data. 0: nothing was published yet. */
  readonly number: number;
  readonly adapters: readonly PublishedAdapter[];
}

/** A release that nodes prepare. */
export interface Proposal extends Release {
  readonly id: string;
  /** Addresses of the nodes that must have prepared it. */
  readonly members: readonly string[];
  /** Time that they have. */
  readonly limitMs: number;
}

/** The one text that decides which adapters are active: a proposal becomes the committed release, or vanishes. */
export interface ReleaseRecord {
  readonly committed: Release;
  /** For a rollback; null: none. */
  readonly previous: Release | null;
  readonly proposal: Proposal | null;
}

export const NO_RELEASE: Release = { number: 0, adapters: [] };
export const EMPTY_RECORD: ReleaseRecord = { committed: NO_RELEASE, previous: null, proposal: null };

export const MAX_PUBLISHED = 64;
export const MAX_MEMBERS = 1000;
/** Far above adapters in use; the store holds up to three releases of them. */
export const MAX_FILE_BYTES = 512 * 2 ** 20;
/** Messages of NATS have at most 1 MiB. */
const MAX_CHARS = 2 ** 20;
const MAX_LIMIT_MS = 3_600_000;

const SHA256 = /^[0-9a-f]{64}$/;
export const ADAPTER_NAME = /^[\w.-]{1,64}$/;

/** The bytes that a publisher signs. */
export function signedBytes({
  model,
  name,
  sha256,
  sizeBytes,
}: Omit<PublishedAdapter, 'key' | 'signature' | 'modelHash'>) {
  return new TextEncoder().encode(`ruvllm-adapter/1\n${JSON.stringify([model, name, sha256, sizeBytes])}`);
}

export const isSameAdapter = (a: PublishedAdapter, b: PublishedAdapter): boolean =>
  a.model === b.model && a.name === b.name && a.sha256 === b.sha256;

/**
 * Below 0: `a` is older. A store that lost a write may accept two releases with one number: all nodes must prefer the same one, whichever
 * they saw first.
 */
export function compareReleases(a: Release, b: Release): number {
  if (a.number !== b.number) return a.number - b.number;
  const [textA, textB] = [a, b].map(({ adapters }) => JSON.stringify(adapters)) as [string, string];
  return textA === textB ? 0 : textA < textB ? -1 : 1;
}

export function writeRecord(keys: FleetKeys, record: ReleaseRecord): string {
  const body = JSON.stringify(record);
  const text = JSON.stringify({ body, signature: keys.sign('release', body) });
  if (text.length <= MAX_CHARS) return text;
  throw new RuvLLMError('limit_exceeded', `the record of releases has ${text.length} bytes; the limit is ${MAX_CHARS}`);
}

/** Null: not signed with the secret of the fleet, or damaged. */
export function readRecord(keys: FleetKeys, text: string): ReleaseRecord | null {
  if (text.length > MAX_CHARS) return null;
  try {
    const { body, signature } = JSON.parse(text) as { body: unknown; signature: unknown };
    if (typeof body !== 'string' || typeof signature !== 'string' || !keys.verify('release', body, signature))
      return null;
    const record = JSON.parse(body) as ReleaseRecord;
    const { committed, previous, proposal } = record;
    const isRecord =
      isRelease(committed) &&
      (previous === null || isRelease(previous)) &&
      (proposal === null || (isRelease(proposal) && isProposal(proposal)));
    return isRecord ? record : null;
  } catch {
    return null;
  }
}

function isRelease({ number, adapters }: Release): boolean {
  return isCount(number) && Array.isArray(adapters) && adapters.length <= MAX_PUBLISHED && adapters.every(isPublished);
}

function isProposal({ id, members, limitMs }: Proposal): boolean {
  const isList = Array.isArray(members) && members.length <= MAX_MEMBERS && members.every(isText);
  return isText(id) && isList && isCount(limitMs) && limitMs <= MAX_LIMIT_MS;
}

function isPublished({ model, name, sha256, sizeBytes, modelHash, key, signature }: PublishedAdapter): boolean {
  const areTexts = [model, modelHash, key, signature].every(isText);
  // Names become names of files and of requests.
  return (
    areTexts && [name, sha256].every(isText) && ADAPTER_NAME.test(name) && SHA256.test(sha256) && isCount(sizeBytes)
  );
}

const isText = (value: unknown): boolean => typeof value === 'string' && value.length <= 512;
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
