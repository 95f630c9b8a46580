import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { nameId, toHex } from '../common/ids.ts';
import type { MemoryServices, Sha256 } from '../common/services.ts';
import { count, name, parseStored, timeMs } from '../schemas/primitives.ts';
import type { AuditLink } from '../schemas/audit.ts';
import type { JsonValue, MemoryStore, PutRecord } from '../types.ts';

/** Where segments go, and what they are wrapped in. */
export interface AuditArchive {
  /** Durable when it resolves; the same name again replaces. `tenant`: whose it is, for who deletes all of a tenant at once. */
  write(name: string, bytes: Uint8Array, tenant: string): Promise<void>;
  /** Null: it is not there. */
  read(name: string): Promise<Uint8Array | null>;
  delete(name: string): Promise<void>;
  /** What was there before this one wrote anything and nobody else can be at work on; default: not known. */
  leftBehind?(): Promise<readonly string[]>;
  gzip(bytes: Uint8Array): Promise<Uint8Array>;
  /** Throws rather than make more than `maxBytes`. */
  gunzip(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array>;
  /** Under the tenant's key; `context` must be the same for `unseal`. */
  seal(tenant: string, bytes: Uint8Array, context: string): Promise<Uint8Array>;
  unseal(tenant: string, bytes: Uint8Array, context: string): Promise<Uint8Array>;
}

/** An entry as it lies in a segment: everything but its vector, of which the hash is there. */
export interface ArchivedEntry {
  readonly id: string;
  readonly createdMs: number;
  readonly body: JsonValue;
  readonly link: AuditLink;
}

/** Stored in manifests, and what archive files are sealed with: the name stays. */
const MANIFEST_NAME = 'witness-segment';
/** A segment is made of at most 1000 entries of 2 × 64 Ki characters; a manifest that says more is not one of ours. */
const MAX_SEGMENT_BYTES = 2 ** 30;

const segmentManifest = z.strictObject({
  file: name,
  firstSequence: z.int().min(1),
  lastSequence: z.int().min(1),
  /** Of the entry before the first, and of the last: what holds the segment into the chain. */
  previousHash: name,
  lastHash: name,
  numEntries: z.int().min(1),
  firstMs: timeMs,
  lastMs: timeMs,
  plainBytes: count.max(MAX_SEGMENT_BYTES),
  fileBytes: count,
  /** Of the file as it lies there. */
  fileSha256: name,
});
export type SegmentManifest = z.infer<typeof segmentManifest>;

/** What a segment is sealed under, besides its tenant. */
export const segmentContext = (file: string): string => `${MANIFEST_NAME}:${file}`;

/** Writes a segment's file; only the manifest, written after it, makes it part of the chain. */
export async function writeSegment(
  archive: AuditArchive,
  { sha256, newId }: MemoryServices,
  tenant: string,
  entries: readonly ArchivedEntry[],
): Promise<SegmentManifest> {
  const first = entries[0]!;
  const last = entries.at(-1)!;
  const plain = new TextEncoder().encode(entries.map((entry) => JSON.stringify(entry)).join('\n'));
  // The tenant's name is not for everyone to read. Two who archive the same entries at once must not write one file: of one of them the
  // manifest counts, and its file must stay what it was.
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

/** Reads a segment back; throws `io` with what is wrong with it. */
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
    throw new RuvLLMError('io', `segment ${file} of ${bytes.length} bytes is not the one that was written`);
  }
  const plain = await archive.gunzip(await archive.unseal(tenant, bytes, segmentContext(file)), plainBytes);
  const lines = new TextDecoder().decode(plain).split('\n');
  return lines.map((line) => JSON.parse(line) as ArchivedEntry);
}

export function manifestPut(sha256: Sha256, tenant: string, manifest: SegmentManifest): PutRecord {
  return {
    id: nameId(sha256, tenant, MANIFEST_NAME, String(manifest.firstSequence)),
    tenant,
    kind: 'state',
    createdMs: manifest.firstMs,
    expiresMs: null,
    fields: { name: MANIFEST_NAME, sequence: manifest.firstSequence },
    body: manifest as unknown as JsonValue,
    vector: null,
    space: null,
  };
}

export interface StoredManifest {
  readonly id: string;
  readonly manifest: SegmentManifest;
}

/** All manifests of a tenant's chain, the oldest first. */
export async function readManifests(store: MemoryStore, tenant: string): Promise<StoredManifest[]> {
  const manifests: StoredManifest[] = [];
  const filter = { fields: [{ field: 'name', is: '=', value: MANIFEST_NAME }] } as const;
  let after: string | null = null;
  do {
    const page = await store.find(tenant, {
      kinds: ['state'],
      filter,
      order: 'oldest',
      limit: 1000,
      ...(after === null ? {} : { after }),
    });
    for (const { id, body } of page.records) {
      manifests.push({ id, manifest: parseStored<SegmentManifest>(segmentManifest, body, `segment manifest ${id}`) });
    }
    after = page.next;
  } while (after !== null);
  return manifests.sort((a, b) => a.manifest.firstSequence - b.manifest.firstSequence);
}
