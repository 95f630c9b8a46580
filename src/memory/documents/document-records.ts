import { z } from 'zod';
import { hashText, nameId } from '../common/ids.ts';
import type { Sha256 } from '../common/services.ts';
import { DOCUMENT_POSITION } from '../fields.ts';
import { nodeToRecord } from '../schemas/node.ts';
import { count, name, parseStored, text, uuid } from '../schemas/primitives.ts';
import type { JsonValue, MemoryRecord, PutRecord } from '../types.ts';
import { clipTitle, MAX_TITLE_CHARS } from './limits.ts';
import type { DocumentChunk } from './types.ts';

/** Levels of headings; code nests its declarations no deeper. */
const MAX_HEADINGS = 8;

const documentBody = z.strictObject({
  name,
  contentType: text(256),
  /** Of the content and everything else that decides about the chunks. */
  hash: text(64),
  sizeBytes: count,
  numChars: count,
  numChunks: count,
  numPages: count.nullable(),
  /** False while its chunks are written: a later add writes them again. */
  isComplete: z.boolean(),
  /** Of the embedder that it was added with: a chunk without words has no vector in any. */
  space: text(MAX_TITLE_CHARS).nullable(),
  /** The folder it was added with; documents of files that are gone are removed with it. */
  folder: text(4096).nullable(),
});
/** The record of a document, which has no vector; its chunks have them. */
export type DocumentBody = z.infer<typeof documentBody>;

const chunkBody = z.strictObject({
  documentId: uuid,
  name,
  /** From 0. */
  index: count,
  start: count,
  end: count,
  headings: z.array(text(MAX_TITLE_CHARS)).max(MAX_HEADINGS),
  startLine: count.nullable(),
  endLine: count.nullable(),
  startPage: count.nullable(),
  endPage: count.nullable(),
});
/** Where a chunk is in its document. */
export type ChunkPosition = Readonly<z.infer<typeof chunkBody>>;

/** Settings of all records of a document. */
export interface DocumentAttributes {
  readonly topic: string | null;
  readonly expiresMs: number | null;
}

const metadataOf = ({ body }: MemoryRecord): Readonly<Record<string, JsonValue>> =>
  (body as { readonly metadata?: Readonly<Record<string, JsonValue>> } | null)?.metadata ?? {};

/** Null: the record is no document with chunks, but a text or a chunk. A field decides, because callers choose the metadata of their texts. */
export function documentOf(record: MemoryRecord): DocumentBody | null {
  if (record.kind !== 'document' || record.fields['position'] !== DOCUMENT_POSITION) return null;
  return parseStored<DocumentBody>(documentBody, metadataOf(record)['document'], `document ${record.id}`);
}

/** Null: the record is no chunk of a document. */
export function chunkOf(record: MemoryRecord): ChunkPosition | null {
  if (record.kind !== 'document' || record.fields['documentId'] == null) return null;
  return parseStored<ChunkPosition>(chunkBody, metadataOf(record)['chunk'], `chunk ${record.id}`);
}

export const documentId = (sha256: Sha256, tenant: string, documentName: string): string =>
  nameId(sha256, tenant, 'document', documentName);

export function documentToRecord(
  { id, tenant, topic, expiresMs }: { id: string; tenant: string } & DocumentAttributes,
  document: DocumentBody,
): PutRecord {
  const node = { source: document.name, topic, quality: null, expiresMs, embedding: null, space: null } as const;
  const metadata = { document } as unknown as Readonly<Record<string, JsonValue>>;
  const record = nodeToRecord({ ...node, id, kind: 'document', text: document.name, metadata }, tenant);
  return { ...record, fields: { ...record.fields, position: DOCUMENT_POSITION } };
}

/** A chunk with its id, which depends on its text only: an unchanged chunk keeps it. */
export interface PlacedChunk {
  readonly id: string;
  readonly text: string;
  readonly position: ChunkPosition;
}

/** One by one: hashing the chunks of a long document takes a while. */
export function* placeChunks(
  sha256: Sha256,
  tenant: string,
  document: { readonly id: string; readonly name: string },
  chunks: readonly DocumentChunk[],
): Generator<PlacedChunk> {
  const numEqual = new Map<string, number>();
  for (const [index, { text: words, ...position }] of chunks.entries()) {
    const headings = position.headings.slice(-MAX_HEADINGS).map(clipTitle);
    const hash = hashText(sha256, JSON.stringify([headings, words]));
    const copy = numEqual.get(hash) ?? 0;
    numEqual.set(hash, copy + 1);
    yield {
      id: nameId(sha256, tenant, 'chunk', document.id, hash, String(copy)),
      text: words,
      position: { ...position, headings, documentId: document.id, name: document.name, index },
    };
  }
}

export function chunkToRecord(
  { id, text: words, position }: PlacedChunk,
  { tenant, topic, expiresMs }: { tenant: string } & DocumentAttributes,
  { vector, space }: Pick<MemoryRecord, 'vector' | 'space'>,
): PutRecord {
  const node = { source: position.name, topic, quality: null, expiresMs, embedding: vector, space } as const;
  const metadata = { chunk: position } as unknown as Readonly<Record<string, JsonValue>>;
  const record = nodeToRecord({ ...node, id, kind: 'document', text: words, metadata }, tenant);
  return { ...record, fields: { ...record.fields, documentId: position.documentId, position: position.index } };
}
