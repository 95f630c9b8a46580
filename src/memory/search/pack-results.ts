import { chunkOf, documentOf } from '../documents/document-records.ts';
import type { MemoryRecord, MemoryStore } from '../types.ts';
import { packContext, type PackChunk, type PackedContext, type PackOptions } from './pack.ts';

/** Chunks whose neighbours are read; those of further ones rarely fit. */
const MAX_EXPANDED = 50;

const textOf = ({ body }: MemoryRecord): string => (body as { readonly text: string }).text;

/** The chunks before and after some chunks, of one read of the store. */
async function readNeighbours(
  store: Pick<MemoryStore, 'find'>,
  tenant: string,
  records: readonly MemoryRecord[],
): Promise<readonly PackChunk[]> {
  const places = records.map((record) => chunkOf(record)!);
  if (places.length === 0) return [];
  const documents = [...new Set(places.map(({ documentId }) => documentId))];
  const indices = [...new Set(places.flatMap(({ index }) => [index - 1, index + 1]))].filter((index) => index >= 0);
  const { records: near } = await store.find(tenant, {
    kinds: ['document'],
    filter: { fields: [{ field: 'documentId', is: 'in', values: documents }, { field: 'position', is: 'in', values: indices }] }, // prettier-ignore
    order: 'oldest',
    limit: 1000,
  });
  return near.map((record) => ({ id: record.id, text: textOf(record), position: chunkOf(record)! }));
}

/** Packs search results with the neighbours of their chunks into a text. */
export async function packResults(
  store: Pick<MemoryStore, 'find'>,
  tenant: string,
  results: readonly { readonly record: MemoryRecord; readonly text: string }[],
  options: PackOptions,
): Promise<PackedContext> {
  // The record of a document only has its name.
  const shown = results.filter(({ record, text }) => text !== '' && documentOf(record) === null);
  const chunks = shown.map(({ record }) => record).filter((record) => chunkOf(record) !== null);
  const near = await readNeighbours(store, tenant, chunks.slice(0, MAX_EXPANDED));
  const items = shown.map(({ record, text }) => {
    const { id, kind } = record;
    const position = chunkOf(record);
    if (position === null) return { id, kind, text };
    const isNeighbour = ({ position: other }: PackChunk): boolean =>
      other.documentId === position.documentId && Math.abs(other.index - position.index) === 1;
    // The next chunk first: a passage is more often continued than prepared.
    const neighbours = near.filter(isNeighbour).sort((a, b) => b.position.index - a.position.index);
    return { id, kind, text: textOf(record), position, neighbours };
  });
  return packContext(items, options);
}
