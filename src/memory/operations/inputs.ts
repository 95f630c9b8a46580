import { z } from 'zod';
import type { EmbeddedText, Memory } from '../memory.ts';
import { NODE_KINDS } from '../schemas/node.ts';
import { text } from '../schemas/primitives.ts';
import type { FieldCondition, MemoryRecord } from '../types.ts';
import { refuseInput } from './operation.ts';

/** Page sizes of lists. */
export const limit = z.int().min(1).max(1000);
/** `next` of the page before. */
export const after = text(4096, 1);
/** Floats are left out, and only counted, unless this is set. */
export const includeVectors = z.boolean().default(false);
/** A text whose meaning is looked for. */
export const meaning = text(1 << 16, 1);
export const minSimilarity = z.number().min(-1).max(1);

/** What a caller can put in and take out; the rest has doors of its own. */
export const nodeKind = z.enum(NODE_KINDS);

const fieldValue = z.union([z.number(), z.boolean(), text(1024), z.null()]);

/** Whether value and values fit the field is for the store to say: it knows the fields. */
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

/** The object without what is undefined: a store refuses keys that say nothing. */
export function given<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}

/** A text to compare with; refused where nothing can be made of it. */
export async function embedMeaning(memory: Memory, words: string, option: string): Promise<EmbeddedText> {
  const embedded = await memory.embed(words);
  if (embedded !== null) return embedded;
  throw refuseInput('nothing can be found by this text: it has nothing to embed, or the memory has no model', option);
}

/** Whether somebody may see it: not the memory's own, nor what has expired and waits to be swept. */
export function isSeen({ services }: Memory, record: MemoryRecord | null | undefined): record is MemoryRecord {
  if (record == null || record.kind === 'state') return false;
  return record.expiresMs === null || record.expiresMs > services.now();
}
