import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { DOCUMENT_LIMITS } from '../documents/limits.ts';
import type { Memory } from '../memory.ts';
import { name, text, timeMs, uuid } from '../schemas/primitives.ts';
import { after, limit } from './inputs.ts';
import { defineOperation, notFound, refuseInput, type MemoryOperation } from './operation.ts';

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const folder = text(4096, 1);
/** Requests looked through for those that a chunk answered. */
const MAX_SCANNED = 2000;

function decodeBase64(words: string): Uint8Array {
  if (words.length % 4 !== 0 || !BASE64.test(words)) throw refuseInput('option "base64" is not base64', 'base64');
  return Uint8Array.from(atob(words), (char) => char.charCodeAt(0));
}

const add = defineOperation({
  name: 'documents.add',
  summary:
    'Adds a document as chunks that are found by meaning; replaces the changed chunks of one with the same name.',
  input: z
    .strictObject({
      name,
      /** Either text or base64. */
      text: text(DOCUMENT_LIMITS.sizeBytes).optional(),
      base64: z.string().max(Math.ceil(DOCUMENT_LIMITS.sizeBytes / 3) * 4).optional(), // prettier-ignore
      contentType: text(256).optional(),
      topic: name.optional(),
      expiresMs: timeMs.optional(),
      folder: folder.optional(),
    })
    .refine((input) => (input.text === undefined) !== (input.base64 === undefined), 'needs either text or base64'),
  async run(memory, tenant, { text: words, base64, ...rest }) {
    const content = words ?? decodeBase64(base64!);
    return { ...(await memory.documents.add(tenant, withoutUndefined({ ...rest, content }))) };
  },
});

const list = defineOperation({
  name: 'documents.list',
  summary: 'Lists the documents, the newest first, page by page.',
  input: z.strictObject({ limit: limit.default(50), after: after.optional() }),
  run: (memory, tenant, page) => memory.documents.list(tenant, withoutUndefined(page)),
});

async function findDocument(memory: Memory, tenant: string, id: string) {
  const document = await memory.documents.get(tenant, id);
  if (document === null) throw notFound(`document ${id} not found`);
  return document;
}

const get = defineOperation({
  name: 'documents.get',
  summary: 'A document with its chunks, and the newest requests that each chunk was a source of.',
  input: z.strictObject({ id: uuid }),
  async run(memory, tenant, { id }) {
    const document = await findDocument(memory, tenant, id);
    const chunks = await memory.documents.chunks(tenant, id);
    const requests = await requestsOf(memory, tenant, new Set(chunks.map((chunk) => chunk.id)));
    return { document, chunks: chunks.map((chunk) => ({ ...chunk, requests: requests.get(chunk.id) ?? [] })) };
  },
});

interface AnsweredRequest {
  readonly requestId: string;
  readonly timestampMs: number;
  readonly query: string;
}

/** The newest requests with these records among their sources. */
async function requestsOf(memory: Memory, tenant: string, ids: ReadonlySet<string>) {
  const requests = new Map<string, AnsweredRequest[]>();
  let next: string | null = null;
  let numScanned = 0;
  do {
    const page = await memory.audit.search(tenant, { limit: 500, ...(next === null ? {} : { after: next }) });
    for (const { entry } of page.entries) {
      const { requestId, timestampMs, query, contextDocIds } = entry;
      for (const id of contextDocIds) {
        if (!ids.has(id)) continue;
        requests.set(id, [...(requests.get(id) ?? []), { requestId, timestampMs, query: query.slice(0, 200).toWellFormed() }]); // prettier-ignore
      }
    }
    numScanned += page.entries.length;
    next = page.next;
  } while (next !== null && numScanned < MAX_SCANNED);
  return requests;
}

const remove = defineOperation({
  name: 'documents.remove',
  summary: 'Removes a document with its chunks.',
  input: z.strictObject({ id: uuid }),
  async run(memory, tenant, { id }) {
    const { name: removed } = await findDocument(memory, tenant, id);
    await memory.documents.remove(tenant, id);
    return { id, name: removed, removed: true };
  },
});

const removeMissing = defineOperation({
  name: 'documents.remove-missing',
  summary: 'Removes the documents of a folder that are not in a list of names.',
  input: z.strictObject({ folder, names: z.array(name).max(10_000) }),
  run: async (memory, tenant, { folder: place, names }) => ({
    removed: await memory.documents.removeMissing(tenant, place, names),
  }),
});

export const documentOperations: readonly MemoryOperation[] = [add, list, get, remove, removeMissing];
