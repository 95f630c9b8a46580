import { isUuid } from '../../core/uuid.ts';
import { refuse } from '../../core/options.ts';
import type { FoundPage, MemoryRecord } from '../types.ts';
import { STORE_LIMITS } from './limits.ts';

/** A place in the order by `createdMs`, then id; writes do not move it. */
export interface Cursor {
  readonly createdMs: number;
  readonly id: string;
}

const TEXT = /^(\d{1,16})_([0-9a-f-]{36})$/;

export function formatCursor({ createdMs, id }: Cursor): string {
  return `${createdMs}_${id}`;
}

export function parseCursor(text: string): Cursor {
  const [, time, id] = (typeof text === 'string' ? TEXT.exec(text) : null) ?? [];
  if (!isUuid(id) || !(Number(time) <= STORE_LIMITS.timeMs)) refuse('after must be "next" of a page', 'after');
  return { createdMs: Number(time), id };
}

/** The first `limit` of the records that were found; one more than that shows that there is a next page. */
export function pageOf(found: readonly MemoryRecord[], limit: number): FoundPage {
  const records = found.slice(0, limit);
  return { records, next: found.length > limit ? formatCursor(records.at(-1)!) : null };
}

/** Older first; within a millisecond by id. */
export function compareCursors(a: Cursor, b: Cursor): number {
  return a.createdMs - b.createdMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
