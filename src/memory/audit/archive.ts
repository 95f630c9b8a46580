import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { nameId, toHex } from '../common/ids.ts';
import type { MemoryServices, Sha256 } from '../common/services.ts';
import { readPages, statePut } from '../common/store-access.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { AuditLink } from '../schemas/audit.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../types.ts';

/** Storage of archived segments, with their compression and encryption. */
export interface AuditArchive {
  /** Durable when it resolves; replaces a segment of the same name. */
  write(name: string, bytes: Uint8Array, tenant: string): Promise<void>;
  /** Null: not found. */
  read(name: string): Promise<Uint8Array | null>;
  delete(name: string): Promise<void>;
  /** Segments from before this archive was opened, which no other process is writing. Default: unknown. */
  leftBehind?(): Promise<readonly string[]>;
  gzip(bytes: Uint8Array): Promise<Uint8Array>;
  /** Throws when the result would exceed `maxBytes`. */
  gunzip(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array>;
  /** With the tenant's key; `unseal` requires the same `context`. */
  seal(tenant: string, bytes: Uint8Array, context: string): Promise<Uint8Array>;
  unseal(tenant: string, bytes: Uint8Array, context: string): Promise<Uint8Array>;
}

/** An entry in a segment: everything but its vector, which is represented by its hash. */
export interface ArchivedEntry {
  readonly id: string;
  readonly createdMs: number;
  readonly body: JsonValue;
  readonly link: AuditLink;
}

/** Stored in manifests and in the associated data of archive files: the name stays. */
const MANIFEST_NAME = 'witness-segment';
/** More than 1000 entries of 2 × 64 Ki characters; a larger manifest is damaged. */
const MAX_SEGMENT_BYTES = 2 ** 30;

const segmentManifest = z.strictObject({
  file: name,
  firstSequence: z.int().min(1),
  lastSequence: z.int().min(1),
  /** Hashes of the entry before the first and of the last: the segment's place in the chain. */
  previousHash: name,
  lastHash: name,
  numEntries: z.int().min(1),
  firstMs: timeMs,
  lastMs: timeMs,
  plainBytes: count.max(MAX_SEGMENT_BYTES),
  fileBytes: count,
  /** Of the sealed file. */
  fileSha256: name,
});
export type SegmentManifest = z.infer<typeof segmentManifest>;

/** Associated data of a segment. */
export const segmentContext = (file: string): string => `${MANIFEST_NAME}:${file}`;

/** Writes a segment's file; its manifest, written afterwards, makes it part of the chain. */
export async function writeSegment(
  archive: AuditArchive,
  { sha256, newId }: MemoryServices,
  tenant: string,
  entries: readonly ArchivedEntry[],
): Promise<SegmentManifest> {
  const first = entries[0]!;
  const last = entries.at(-1)!;
  const plain = new TextEncoder().encode(entries.map((entry) => JSON.stringify(entry)).join('\n'));
  // Unique, because two processes may archive the same entries at once and only one of their manifests counts. Hashed,
  // because file names are visible.
  const unique = toHex(sha256(new TextEncoder().encode(`${newId()} ${last.link.hash}`))).slice(0, 24);
  const file = `${String(first.link.sequence).padStart(12, '0')}-${unique}.seg`;
  const bytes = await archive.seal(tenant, await archive.gzip(plain), segmentContext(file));
  await archive.write(file, bytes, tenant);
  return {
    file,
    firstSequence: first.link.sequence,
    lastSequence: last.link.sequence,
    previousHash: first.link.previousHash,
    lastHash: last.link.hash,
    numEntries: entries.length,
    firstMs: first.createdMs,
    lastMs: last.createdMs,
    plainBytes: plain.length,
    fileBytes: bytes.length,
    fileSha256: toHex(sha256(bytes)),
  };
}

/** Reads a segment; throws `io` when it is missing or damaged. */
export async function readSegment(
  archive: AuditArchive,
  sha256: Sha256,
  tenant: string,
  manifest: SegmentManifest,
): Promise<ArchivedEntry[]> {
  const { file, fileSha256, plainBytes } = manifest;
  const bytes = await archive.read(file);
  if (bytes === null) throw new RuvLLMError('io', `segment ${file} is missing`);
  if (toHex(sha256(bytes)) !== fileSha256) {
    throw new RuvLLMError('io', `segment ${file} of ${bytes.length} bytes does not match the hash in its manifest`);
  }
  const plain = await archive.gunzip(await archive.unseal(tenant, bytes, segmentContext(file)), plainBytes);
  const lines = new TextDecoder().decode(plain).split('\n');
  return lines.map((line) => JSON.parse(line) as ArchivedEntry);
}

export function manifestPut(sha256: Sha256, tenant: string, manifest: SegmentManifest): PutRecord {
  const { firstSequence, firstMs } = manifest;
  const id = nameId(sha256, tenant, MANIFEST_NAME, String(firstSequence));
  return statePut({ id, tenant, createdMs: firstMs }, manifest, { name: MANIFEST_NAME, sequence: firstSequence });
}

export interface StoredManifest {
  readonly id: string;
  readonly manifest: SegmentManifest;
}

/** All manifests of a tenant's chain, the oldest first. */
export async function readManifests(store: MemoryStore, tenant: string): Promise<StoredManifest[]> {
  const manifests: StoredManifest[] = [];
  const filter = { fields: [{ field: 'name', is: '=', value: MANIFEST_NAME }] } as const;
  for await (const page of readPages(store, tenant, { kinds: ['state'], filter, order: 'oldest' })) {
    for (const { id, body } of page) {
      manifests.push({ id, manifest: parseStored<SegmentManifest>(segmentManifest, body, `segment manifest ${id}`) });
    }
  }
  return manifests.sort((a, b) => a.manifest.firstSequence - b.manifest.firstSequence);
}
