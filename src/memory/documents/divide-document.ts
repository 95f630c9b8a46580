import { RuvLLMError } from '../../core/errors.ts';
import { chunkDocument } from './chunk-document.ts';
import { DOCUMENT_LIMITS } from './limits.ts';
import { type DocumentFile, readDocument } from './read-document.ts';
import type { DocumentChunk } from './types.ts';

/** A document as chunks. */
export interface DividedDocument {
  readonly contentType: string;
  readonly numChars: number;
  /** Null: the format has no pages. */
  readonly numPages: number | null;
  readonly chunks: readonly DocumentChunk[];
}

/** Reads and divides a file of a tenant, possibly in another thread: a hostile or a large file takes seconds. */
export type DivideDocument = (file: DocumentFile, tenant: string) => Promise<DividedDocument>;

export const divideDocument = async (file: DocumentFile): Promise<DividedDocument> => {
  const read = await readDocument(file);
  const chunks = chunkDocument(read);
  const limit = DOCUMENT_LIMITS.chunks;
  if (chunks.length > limit) {
    throw new RuvLLMError('limit_exceeded', `${JSON.stringify(file.name)} has ${chunks.length} chunks; the limit is ${limit}. Divide the file.`, { data: { numChunks: chunks.length, limit } }); // prettier-ignore
  }
  const { contentType, text, pageStarts } = read;
  return { contentType, numChars: text.length, numPages: pageStarts?.length ?? null, chunks };
};
