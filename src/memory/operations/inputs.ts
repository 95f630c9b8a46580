import { z } from 'zod';
import type { EmbeddedText, Memory } from '../memory.ts';
import { EDGE_RELATIONS, NODE_KINDS } from '../schemas/node.ts';
import { text } from '../schemas/primitives.ts';
import { RECORD_KINDS, type FieldCondition, type MemoryRecord } from '../types.ts';
import { notFound, refuseInput } from './operation.ts';

/** Page sizes of lists. */
export const limit = z.int().min(1).max(1000);
/** `next` of the page before. */
export const after = text(4096, 1);
/** False: vectors are left out and only counted. */
export const includeVectors = z.boolean().default(false);
/** A text to search for by meaning. */
export const meaning = text(1 << 16, 1);
export const minSimilarity = z.number().min(-1).max(1);

/** The kinds that callers add directly. */
export const nodeKind = z.enum(NODE_KINDS);

const fieldValue = z.union([z.number(), z.boolean(), text(1024), z.null()]);

/** The store checks values against the declared fields. */
export const conditions = z
  .array(
    z.strictObject({
      field: text(256, 1),
      is: z.enum(['=', '!=', '<', '<=', '>', '>=', 'in']),
      value: fieldValue.optional(),
      values: z.array(fieldValue).min(1).max(256).optional(),
    }),
  )
  .max(32)
  .transform((list) => list as unknown as FieldCondition[]);

/** Embeds a text to compare with requests. */
export async function embedMeaning(memory: Memory, words: string, option: string): Promise<EmbeddedText> {
  const embedded = await memory.embedRequest(words);
  if (embedded !== null) return embedded;
  throw refuseInput('this text cannot be embedded: it has no tokens, or the memory has no model', option);
}

/** Whether callers may see it: not internal state, and not expired. */
export function isVisible({ services }: Memory, record: MemoryRecord | null | undefined): record is MemoryRecord {
  if (record == null || record.kind === 'state') return false;
  return record.expiresMs === null || record.expiresMs > services.now();
}

export async function getVisible(memory: Memory, tenant: string, id: string): Promise<MemoryRecord> {
  const [record] = await memory.store.get(tenant, [id]);
  if (isVisible(memory, record)) return record;
  throw notFound(`there is no record ${id}`);
}

/** The kinds of records that callers may see. */
type VisibleKind = Exclude<MemoryRecord['kind'], 'state'>;
export const VISIBLE_KINDS = RECORD_KINDS.filter((kind) => kind !== 'state') as [VisibleKind, ...VisibleKind[]];
export const visibleKinds = z.array(z.enum(VISIBLE_KINDS)).min(1).max(VISIBLE_KINDS.length);
export const relations = z.array(z.enum(EDGE_RELATIONS)).min(1).max(EDGE_RELATIONS.length);

/** The start of a text in a list. */
export const previewOf = (text: string, maxLength = 512): string => text.slice(0, maxLength).toWellFormed();
