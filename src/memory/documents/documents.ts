import { RuvLLMError } from '../../core/errors.ts';
import { checkKeys } from '../../core/options.ts';
import { canonicalJson } from '../common/canonical-json.ts';
import { hashText, toHex } from '../common/ids.ts';
import type { MemoryServices } from '../common/services.ts';
import { readPages } from '../common/store-access.ts';
import { DOCUMENT_POSITION } from '../fields.ts';
import { name as nameSchema, parseWith } from '../schemas/primitives.ts';
import type { EmbeddedText } from '../search/embed-text.ts';
import { recordText } from '../search/record-text.ts';
import { checkTenantIsCallers } from '../state-tenant.ts';
import type { MemoryEdge, MemoryRecord, MemoryStore, PutRecord } from '../types.ts';
import type { DivideDocument } from './divide-document.ts';
import {
  chunkOf,
  type ChunkPosition,
  chunkToRecord,
  type DocumentAttributes,
  type DocumentBody,
  documentId,
  documentOf,
  documentToRecord,
  placeChunks,
  type PlacedChunk,
} from './document-records.ts';

/** A document to add. */
export interface NewDocument {
  /** Identifies it: a later document of the same name replaces it. */
  readonly name: string;
  /** A file, or text. */
  readonly content: Uint8Array | string;
  /** Such as `text/markdown` or `application/pdf`. Default: by the extension of the name and the first bytes. */
  readonly contentType?: string;
  readonly topic?: string;
  /** Milliseconds since 1970. Default: never. */
  readonly expiresMs?: number;
  /** The folder it belongs to, for `removeMissing`. Default: none. */
  readonly folder?: string;
}

/** The changes of an `add`. */
export interface AddedDocument {
  readonly id: string;
  readonly name: string;
  readonly numChunks: number;
  /** New or changed chunks, which were embedded. */
  readonly numAdded: number;
  /** Chunks with the same text as before, wherever they are now. */
  readonly numKept: number;
  readonly numRemoved: number;
  /** Whether nothing had to be written. */
  readonly isUnchanged: boolean;
}

/** A stored document, without its chunks. */
export interface DocumentInfo extends Omit<DocumentBody, 'hash' | 'space'> {
  readonly id: string;
  readonly topic: string | null;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly expiresMs: number | null;
}

/** A chunk of a stored document. */
export interface StoredChunk extends Omit<ChunkPosition, 'documentId' | 'name'> {
  readonly id: string;
  readonly text: string;
}

/** Documents, divided into chunks that are found by meaning. */
export interface Documents {
  /** Adds a document or replaces the changed chunks of one with the same name. A refused document changes nothing. */
  add(tenant: string, document: NewDocument): Promise<AddedDocument>;
  /** The newest first. */
  list(tenant: string, page: { readonly limit: number; readonly after?: string }): Promise<{ readonly documents: readonly DocumentInfo[]; readonly next: string | null }>; // prettier-ignore
  /** Null: not found. */
  get(tenant: string, id: string): Promise<DocumentInfo | null>;
  /** The chunks of a document in order. */
  chunks(tenant: string, id: string): Promise<readonly StoredChunk[]>;
  /** Removes a document with its chunks; false: not found. */
  remove(tenant: string, id: string): Promise<boolean>;
  /** Removes the documents of a folder that are not among `names`; returns the removed names. */
  removeMissing(tenant: string, folder: string, names: readonly string[]): Promise<readonly string[]>;
}

export interface DocumentsContext {
  readonly store: MemoryStore;
  readonly services: Pick<MemoryServices, 'sha256' | 'now'>;
  readonly divide: DivideDocument;
  embed(text: string): Promise<EmbeddedText | null>;
  /** The space of `embed`; null: there is no embedder. */
  space(): string | null;
  /** Called between the parts of long work; see `createPauses`. */
  pause(): Promise<void>;
  /** Called before the first write of a tenant. */
  meet(tenant: string): Promise<void>;
}

/** Changes when chunks are made in another way, so that unchanged files are divided again. */
const CHUNKER_VERSION = 1;
const KEYS = ['name', 'content', 'contentType', 'topic', 'expiresMs', 'folder'];
/** Records or edges per call of the store. */
const BATCH = 500;
const EMBEDDED_AT_ONCE = 32;

/** The records of documents, without chunks and other texts. */
const DOCUMENT_QUERY = {
  kinds: ['document'],
  filter: { fields: [{ field: 'position', is: '=', value: DOCUMENT_POSITION }] },
  order: 'newest',
} as const;

const batches = <T>(items: readonly T[], size = BATCH): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));

const isInPlace = (
  record: MemoryRecord,
  { position }: PlacedChunk,
  { topic, expiresMs }: DocumentAttributes,
): boolean =>
  canonicalJson(chunkOf(record)) === canonicalJson(position) &&
  (record.fields['topic'] ?? null) === topic &&
  record.expiresMs === expiresMs;

const keyOf = ({ from, to, relation }: Pick<MemoryEdge, 'from' | 'to' | 'relation'>): string =>
  `${from}${to}${relation}`;

function edgesOf(id: string, chunks: readonly PlacedChunk[]): Omit<MemoryEdge, 'updatedMs'>[] {
  const weight = { weight: 1, confidence: 1 };
  return chunks.flatMap((chunk, i) => [
    { from: id, to: chunk.id, relation: 'contains', ...weight },
    // From the later to the earlier one, as between the turns of a session.
    ...(i === 0 ? [] : [{ from: chunk.id, to: chunks[i - 1]!.id, relation: 'follows', ...weight }]),
  ]);
}

function infoOf(record: MemoryRecord): DocumentInfo | null {
  const document = documentOf(record);
  if (document === null) return null;
  const { hash: _, space: __, ...shown } = document;
  const { id, createdMs, updatedMs, expiresMs, fields } = record;
  return { id, ...shown, topic: (fields['topic'] as string | null) ?? null, createdMs, updatedMs, expiresMs };
}

export function createDocuments({ store, services, divide, embed, space, pause, meet }: DocumentsContext): Documents {
  const { sha256 } = services;
  /** Without an embedder vectors stay as they are: it may come later. */
  const isCurrent = (other: string | null): boolean => space() === null || other === space();

  const chunkRecords = async (tenant: string, id: string): Promise<MemoryRecord[]> => {
    const records: MemoryRecord[] = [];
    const filter = { fields: [{ field: 'documentId', is: '=', value: id }] } as const;
    for await (const page of readPages(store, tenant, { kinds: ['document'], filter, order: 'oldest' }))
      records.push(...page);
    return records;
  };
  const findDocument = async (tenant: string, id: string): Promise<MemoryRecord | null> => {
    const [record] = await store.get(tenant, [id]);
    const isLive = record != null && (record.expiresMs === null || record.expiresMs > services.now());
    return isLive && documentOf(record) !== null ? record : null;
  };
  const deleteAll = async (tenant: string, ids: readonly string[]): Promise<void> => {
    for (const part of batches(ids)) await store.delete(tenant, part);
  };
  /** Puts only chunks that are new, have moved or have other attributes; vectors of unchanged texts are kept. */
  async function toPuts(
    tenant: string,
    attributes: DocumentAttributes,
    chunks: readonly PlacedChunk[],
    { present, isSameSpace }: { present: ReadonlyMap<string, MemoryRecord>; isSameSpace: boolean },
  ): Promise<{ puts: PutRecord[]; numAdded: number }> {
    const puts: PutRecord[] = [];
    const fresh: PutRecord[] = [];
    for (const chunk of chunks) {
      await pause();
      const before = present.get(chunk.id);
      const isKept = before !== undefined && (isCurrent(before.space) || (isSameSpace && before.space === null));
      if (isKept && isInPlace(before, chunk, attributes)) continue;
      const vector = isKept ? before : { vector: null, space: null };
      const record = chunkToRecord(chunk, { tenant, ...attributes }, vector);
      (isKept ? puts : fresh).push(record);
    }
    // Some at once, so that an encoder can take them together.
    for (const part of batches(fresh, EMBEDDED_AT_ONCE)) {
      const embedding: Promise<EmbeddedText | null>[] = [];
      for (const record of part) {
        await pause();
        const vector = embed(recordText(record));
        vector.catch(() => {}); // thrown below, where all are awaited
        embedding.push(vector);
      }
      const vectors = await Promise.all(embedding);
      for (const [j, record] of part.entries()) {
        puts.push({ ...record, vector: vectors[j]?.vector ?? null, space: vectors[j]?.space ?? null });
      }
    }
    return { puts, numAdded: fresh.length };
  }

  /** Not through the graph, which keeps the 64 heaviest edges of a record. */
  async function linkChunks(
    tenant: string,
    id: string,
    chunks: readonly PlacedChunk[],
    isUpdate: boolean,
  ): Promise<void> {
    const edges = edgesOf(id, chunks);
    if (isUpdate) {
      const current = new Set(edges.map(keyOf));
      for (const part of batches(chunks)) {
        const query = { ids: part.map((chunk) => chunk.id), direction: 'out', relations: ['follows'], limit: 10_000 } as const; // prettier-ignore
        const stale = (await store.edgesOf(tenant, query)).filter((edge) => !current.has(keyOf(edge)));
        if (stale.length > 0) await store.deleteEdges(tenant, stale.map(({ from, to, relation }) => ({ from, to, relation }))); // prettier-ignore
      }
    }
    for (const part of batches(edges)) await store.putEdges(tenant, part);
  }

  /** Two changes of one document at once would mix their chunks. */
  const changes = new Map<string, Promise<unknown>>();
  async function inTurn<T>(id: string, change: () => Promise<T>): Promise<T> {
    const turn = (changes.get(id) ?? Promise.resolve()).then(change, change);
    changes.set(id, turn);
    try {
      return await turn;
    } finally {
      if (changes.get(id) === turn) changes.delete(id);
    }
  }

  async function addInTurn(tenant: string, id: string, given: NewDocument): Promise<AddedDocument> {
    const { content, contentType, folder = null, topic = null, expiresMs = null } = given;
    const name = given.name;
    const attributes = { topic, expiresMs };
    const bytesHash = typeof content === 'string' ? hashText(sha256, content) : toHex(sha256(content));
    const hash = hashText(sha256, JSON.stringify([CHUNKER_VERSION, bytesHash, contentType ?? null]));
    const current = await findDocument(tenant, id);
    const stored = current === null ? null : documentOf(current)!;
    const present = new Map((await chunkRecords(tenant, id)).map((record) => [record.id, record]));
    const isUnchanged =
      stored !== null &&
      stored.isComplete &&
      stored.hash === hash &&
      stored.folder === folder &&
      isCurrent(stored.space) &&
      current!.expiresMs === expiresMs &&
      (current!.fields['topic'] ?? null) === topic &&
      present.size === stored.numChunks &&
      [...present.values()].every((chunk) => isCurrent(chunk.space) || chunk.space === null);
    if (isUnchanged) {
      return { id, name, numChunks: present.size, numAdded: 0, numKept: present.size, numRemoved: 0, isUnchanged };
    }

    const divided = await divide({ name, content, contentType }, tenant);
    const chunks: PlacedChunk[] = [];
    for (const chunk of placeChunks(sha256, tenant, { id, name }, divided.chunks)) {
      await pause();
      chunks.push(chunk);
    }
    const { puts, numAdded } = await toPuts(tenant, attributes, chunks, {
      present,
      isSameSpace: stored?.space === space(),
    });
    const body: Omit<DocumentBody, 'isComplete'> = {
      name,
      contentType: divided.contentType,
      hash,
      sizeBytes: typeof content === 'string' ? new TextEncoder().encode(content).length : content.length,
      numChars: divided.numChars,
      numChunks: chunks.length,
      numPages: divided.numPages,
      space: space(),
      folder,
    };
    const write = (isComplete: boolean): PutRecord =>
      documentToRecord({ id, tenant, ...attributes }, { ...body, isComplete });
    const ids = new Set(chunks.map((chunk) => chunk.id));
    const gone = [...present.keys()].filter((old) => !ids.has(old));
    await meet(tenant);
    // The last call completes the document; a process that is killed before leaves it incomplete, and the next add repairs it.
    const isOneCall = puts.length <= BATCH && gone.length === 0;
    if (!isOneCall) {
      await store.put([write(false)]);
      for (const part of batches(puts)) await store.put(part);
      await deleteAll(tenant, gone);
    }
    await store.put([...(isOneCall ? puts : []), write(true)]);
    await linkChunks(tenant, id, chunks, present.size > 0);
    return { id, name, numChunks: chunks.length, numAdded, numKept: chunks.length - numAdded, numRemoved: gone.length, isUnchanged }; // prettier-ignore
  }

  async function removeInTurn(tenant: string, id: string): Promise<boolean> {
    if ((await findDocument(tenant, id)) === null) return false;
    // The document last: a process that is killed before can remove the rest later.
    await deleteAll(tenant, (await chunkRecords(tenant, id)).map((record) => record.id)); // prettier-ignore
    return (await store.delete(tenant, [id])) > 0;
  }

  return {
    async add(tenant, given) {
      checkTenantIsCallers(tenant);
      checkKeys(given, 'document', KEYS);
      const name = parseWith<string>(nameSchema, given.name, 'name of the document');
      if (typeof given.content !== 'string' && !(given.content instanceof Uint8Array)) {
        throw new RuvLLMError('invalid_option', 'option "content" must be a string or a Uint8Array', { data: { option: 'content' } }); // prettier-ignore
      }
      const id = documentId(sha256, tenant, name);
      return inTurn(id, () => addInTurn(tenant, id, given));
    },
    async list(tenant, { limit, after }) {
      const { records, next } = await store.find(tenant, {
        ...DOCUMENT_QUERY,
        limit,
        ...(after === undefined ? {} : { after }),
      });
      const isLive = ({ expiresMs }: MemoryRecord): boolean => expiresMs === null || expiresMs > services.now();
      return { documents: records.filter(isLive).map((record) => infoOf(record)!), next };
    },
    async get(tenant, id) {
      const record = await findDocument(tenant, id);
      return record === null ? null : infoOf(record);
    },
    async chunks(tenant, id) {
      const chunks = (await chunkRecords(tenant, id)).map((record) => {
        const { documentId: _, name: __, ...position } = chunkOf(record)!;
        return { id: record.id, text: (record.body as { text: string }).text, ...position };
      });
      return chunks.sort((a, b) => a.index - b.index);
    },
    async remove(tenant, id) {
      checkTenantIsCallers(tenant);
      return inTurn(id, () => removeInTurn(tenant, id));
    },
    async removeMissing(tenant, folder, names) {
      checkTenantIsCallers(tenant);
      const present = new Set(names);
      const missing: { id: string; name: string }[] = [];
      for await (const page of readPages(store, tenant, { ...DOCUMENT_QUERY })) {
        for (const record of page) {
          const { folder: place, name } = documentOf(record)!;
          if (place === folder && !present.has(name)) missing.push({ id: record.id, name });
        }
      }
      for (const { id } of missing) await inTurn(id, () => removeInTurn(tenant, id));
      return missing.map(({ name }) => name);
    },
  };
}
