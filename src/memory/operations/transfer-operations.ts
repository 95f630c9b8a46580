import { z } from 'zod';
import { withoutUndefined } from '../common/store-access.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { Memory } from '../memory.ts';
import { parseEdge } from '../schemas/node.ts';
import { formatCursor } from '../store/cursor.ts';
import type { MemoryEdge, PutRecord } from '../types.ts';
import { after, includeVectors, isVisible } from './inputs.ts';
import { readExported, TRANSFERRED_KINDS, type ImportedRecord } from './import-records.ts';
import { defineOperation, type MemoryOperation } from './operation.ts';
import { plainRecord } from './plain.ts';

/** Approximate size of a page: it must fit an answer, and a request of an import. */
const MAX_PAGE_CHARS = 2 << 20;
/** Edges exported with one record. */
const MAX_EDGES = 1000;
/** Refusals listed one by one. */
const MAX_REASONS = 100;
const BATCH = 200;

const exportPage = defineOperation({
  name: 'memory.export',
  summary: 'Exports all records that can be imported again, the oldest first, page by page.',
  input: z.strictObject({
    kinds: z.array(z.enum(TRANSFERRED_KINDS)).min(1).max(TRANSFERRED_KINDS.length).default(TRANSFERRED_KINDS),
    limit: z.int().min(1).max(BATCH).default(BATCH),
    after: after.optional(),
    includeVectors,
    /** Edges in both directions: the end that is imported last brings them. */
    includeEdges: z.boolean().default(true),
  }),
  async run(memory, tenant, { kinds, limit, after: from, includeVectors: hasVectors, includeEdges }) {
    const page = await memory.store.find(
      tenant,
      withoutUndefined({ kinds: [...new Set(kinds)], order: 'oldest' as const, limit, after: from }),
    );
    const records: object[] = [];
    let numChars = 0;
    for (const record of page.records) {
      if (!isVisible(memory, record)) continue;
      const found = includeEdges
        ? await memory.store.edgesOf(tenant, { ids: [record.id], direction: 'both', limit: MAX_EDGES })
        : [];
      const edges = found.map(({ from: start, to, relation, weight, confidence }) => ({ from: start, to, relation, weight, confidence })); // prettier-ignore
      const line = { ...plainRecord(record, hasVectors), ...(edges.length === 0 ? {} : { edges }) };
      records.push(line);
      numChars += JSON.stringify(line).length;
      const isLast = record === page.records.at(-1);
      if (numChars > MAX_PAGE_CHARS && !isLast) return { records, next: formatCursor(record) };
    }
    return { records, next: page.next };
  },
});

interface Refusal {
  readonly index: number;
  readonly id: string | null;
  readonly reason: string;
}

/** The valid records of a batch, and the refused lines. */
interface Sorted {
  readonly taken: { readonly index: number; readonly record: ImportedRecord }[];
  readonly refused: Refusal[];
}

/** `parseStored` blames the store; here the line is to blame. */
const reasonOf = (error: unknown): string => {
  const { cause, message } = error as RuvLLMError;
  return cause instanceof RuvLLMError ? cause.message : message;
};
/** The caller's line is invalid; any other error fails the import. */
const isRefusal = (error: unknown): boolean =>
  error instanceof RuvLLMError && (error.code === 'invalid_option' || error.code === 'io');

function sortLines(lines: readonly unknown[], context: Parameters<typeof readExported>[1]): Sorted {
  const sorted: Sorted = { taken: [], refused: [] };
  const seen = new Set<string>();
  for (const [index, line] of lines.entries()) {
    const id = (line as { id?: unknown } | null)?.id;
    try {
      const record = readExported(line, context);
      if (seen.has(record.put.id)) throw new RuvLLMError('invalid_option', `the record ${record.put.id} occurs twice in one batch`); // prettier-ignore
      seen.add(record.put.id);
      sorted.taken.push({ index, record });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      sorted.refused.push({ index, id: typeof id === 'string' ? id.slice(0, 64) : null, reason: reasonOf(error) });
    }
  }
  return sorted;
}

/** All at once; one by one where the store refuses one of them. */
async function putRecords(memory: Memory, puts: readonly { index: number; put: PutRecord }[], refused: Refusal[]) {
  const written = new Set<number>();
  const parts = [puts, ...puts.map((one) => [one])];
  for (const part of parts) {
    if (part.length === 0) break;
    try {
      await memory.store.put(part.map(({ put }) => put));
      for (const { index } of part) written.add(index);
      if (part === puts) break;
    } catch (error) {
      if (!(error instanceof RuvLLMError && error.code === 'invalid_option')) throw error;
      if (part !== puts) refused.push({ index: part[0]!.index, id: part[0]!.put.id, reason: reasonOf(error) });
    }
  }
  return written;
}

type NewEdge = Omit<MemoryEdge, 'updatedMs'>;

/** Writes edges whose ends both exist. */
async function putEdges(memory: Memory, tenant: string, edges: readonly NewEdge[]) {
  const ends = [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
  const there = new Set<string>();
  for (let start = 0; start < ends.length; start += 1000) {
    for (const record of await memory.store.get(tenant, ends.slice(start, start + 1000))) {
      if (record !== null && record.kind !== 'state') there.add(record.id);
    }
  }
  const whole = edges.filter(({ from, to }) => there.has(from) && there.has(to));
  for (let start = 0; start < whole.length; start += 1000) {
    await memory.store.putEdges(tenant, whole.slice(start, start + 1000));
  }
  return { numEdges: whole.length, numEdgesLeftOut: edges.length - whole.length };
}

function readEdges(records: readonly ImportedRecord[]): { edges: NewEdge[]; numUnknown: number } {
  const unique = new Map<string, NewEdge>();
  let numUnknown = 0;
  for (const edge of records.flatMap(({ edges }) => edges)) {
    try {
      const { from, to, relation, weight, confidence } = parseEdge(edge);
      unique.set(`${from}${to}${relation}`, { from, to, relation, weight, confidence });
    } catch (error) {
      if (!isRefusal(error)) throw error;
      numUnknown++; // an unknown relation costs the edge, not the record
    }
  }
  return { edges: [...unique.values()], numUnknown };
}

const importBatch = defineOperation({
  name: 'memory.import',
  summary: 'Imports exported records under their ids; embeds texts again whose vectors are from another model.',
  // It also replaces sessions and policies, which a key with scope `write` may not.
  input: z.strictObject({ records: z.array(z.unknown()).min(1).max(BATCH) }),
  async run(memory, tenant, { records: lines }) {
    const { space: ownSpace } = await memory.stats(tenant);
    const { taken, refused } = sortLines(lines, { tenant, sha256: memory.services.sha256, ownSpace });
    const ids = taken.map(({ record }) => record.put.id);
    const before = ids.length === 0 ? [] : await memory.store.get(tenant, ids);
    const puts: { index: number; put: PutRecord; isNew: boolean }[] = [];
    let numEmbedded = 0;
    for (const [at, { index, record }] of taken.entries()) {
      const old = before[at] ?? null;
      if (old !== null && old.kind !== record.put.kind) {
        // Otherwise a document could replace an audit entry.
        refused.push({ index, id: old.id, reason: `the id belongs to a record of the kind ${old.kind}` });
        continue;
      }
      const embedded = record.text === null ? null : await memory.embed(record.text);
      if (embedded !== null) numEmbedded++;
      puts.push({ index, put: embedded === null ? record.put : { ...record.put, ...embedded }, isNew: old === null });
    }
    if (puts.length > 0) await memory.meet(tenant);
    const written = await putRecords(memory, puts, refused);
    const isWritten = ({ index }: { index: number }): boolean => written.has(index);
    const { edges, numUnknown } = readEdges(taken.filter(isWritten).map(({ record }) => record));
    const { numEdges, numEdgesLeftOut } = await putEdges(memory, tenant, edges);
    const done = puts.filter(isWritten);
    refused.sort((a, b) => a.index - b.index);
    return {
      numAdded: done.filter(({ isNew }) => isNew).length,
      numReplaced: done.filter(({ isNew }) => !isNew).length,
      numRefused: refused.length,
      numEmbedded,
      numEdges,
      numEdgesLeftOut: numEdgesLeftOut + numUnknown,
      refused: refused.slice(0, MAX_REASONS),
    };
  },
});

export const transferOperations: readonly MemoryOperation[] = [exportPage, importBatch];
