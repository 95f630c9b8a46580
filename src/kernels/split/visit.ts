import type { KvRegion, Offset, StateRegion, StateRows, WeightMatrix } from '../contract.ts';

/**
 * Names the memory of an operation and returns its addresses on one side: once to learn the ranges, once to translate
 * the operation.
 */
export interface Visit {
  read(offset: Offset, sizeBytes: number): Offset;
  /** Reads any part of an allocation from here on. */
  readRest(offset: Offset): Offset;
  /** All of these bytes are written, and none is read before. */
  write(offset: Offset, sizeBytes: number): Offset;
  /** Some of these bytes are written; others may stay. */
  update(offset: Offset, sizeBytes: number): Offset;
  /** Reads and writes any part of an allocation. */
  updateAll(offset: Offset): Offset;
  matrix(weight: WeightMatrix): WeightMatrix;
  /** The contents of int32[count], which an operation's ranges depend on. */
  ints(offset: Offset, count: number): Int32Array;
  /** Announces KV pages. */
  pages(base: Offset): void;
}

/** An operation's description: returns the same operation with the addresses of a side. */
export type Visitor<Op> = (op: Op, visit: Visit) => Op;

type Access = 'read' | 'write' | 'update';

/** Rows by their numbers: consecutive ones as one range. Returns the address of row 0. */
export function visitRows(
  visit: Visit,
  access: Access,
  { offset, rowBytes, spans }: { offset: Offset; rowBytes: number; spans: readonly RowSpan[] },
): Offset {
  let start = visit.read(offset, 0);
  for (const { first, count } of spans) {
    start = visit[access](offset + first * rowBytes, count * rowBytes) - first * rowBytes;
  }
  return start;
}

/** Consecutive rows. */
export interface RowSpan {
  readonly first: number;
  readonly count: number;
}

/** The rows of a list, as few spans. */
export function spansOf(rows: Int32Array): RowSpan[] {
  const spans: { first: number; count: number }[] = [];
  for (const row of rows.toSorted()) {
    const last = spans.at(-1);
    if (last !== undefined && row <= last.first + last.count) last.count = Math.max(last.count, row + 1 - last.first);
    else spans.push({ first: row, count: 1 });
  }
  return spans;
}

/** The rows of each sequence in a step. */
export function sequenceSpans(visit: Visit, { sequences, numSequences }: SequenceTable): RowSpan[] {
  const table = visit.ints(sequences, numSequences * 4);
  return Array.from({ length: numSequences }, (_, i) => ({ first: table[4 * i]!, count: table[4 * i + 1]! }));
}

type SequenceTable = Pick<StateRows, 'sequences' | 'numSequences'>;

/** Layers of all pages. Rows of different layers alternate, so the range has others, too. */
export function visitRegion(
  visit: Visit,
  access: 'read' | 'update',
  kv: KvRegion,
  { firstLayer, numLayers }: { firstLayer: number; numLayers: number },
): KvRegion {
  const skipped = firstLayer * kv.layerBytes;
  visit.pages(kv.base);
  const sizeBytes = (kv.numPages - 1) * kv.pageBytes + numLayers * kv.layerBytes;
  return { ...kv, base: visit[access](kv.base + skipped, sizeBytes) - skipped };
}

export function visitStates(visit: Visit, states: StateRegion): StateRegion {
  return { ...states, base: visit.update(states.base, states.stateBytes * states.numStates) };
}

export const visitOptional = (visit: Visit, offset: Offset | null | undefined, sizeBytes: number): Offset | null =>
  offset == null ? null : visit.read(offset, sizeBytes);
