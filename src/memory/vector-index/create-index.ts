import type { BlockFile } from './block-file.ts';
import { openSaved } from './open-index.ts';
import { resolveVectorIndexOptions, type VectorIndexOptions } from './options.ts';
import { createSaver } from './saver.ts';
import type { VectorIndex } from './types.ts';
import { createIndex } from './vector-index.ts';
import { createVectorSpace } from './vector-space.ts';

async function create(options: VectorIndexOptions, graphFrom: (given: number) => number): Promise<VectorIndex> {
  const resolved = resolveVectorIndexOptions(options);
  const from = graphFrom(resolved.graphFrom);
  const space = await createVectorSpace(resolved, resolved.capacity, from === 0);
  return createIndex({ options: resolved, graphFrom: from, space }, null);
}

/** Compares with every vector; the reference in tests and benchmarks. */
export function createExactIndex(options: VectorIndexOptions): Promise<VectorIndex> {
  return create(options, () => Infinity);
}

/** A graph from the first vector on. */
export function createHnswIndex(options: VectorIndexOptions): Promise<VectorIndex> {
  return create(options, () => 0);
}

/** Exact while it is small, with a graph from `graphFrom` vectors on. */
export function createVectorIndex(options: VectorIndexOptions): Promise<VectorIndex> {
  return create(options, (given) => given);
}

interface OpenedVectorIndex {
  readonly index: VectorIndex;
  /** The argument of `save`. */
  readonly seq: number;
}

/**
 * Opens the newest saved index without rebuilding it; null: none was saved. Damage is `hash_mismatch`: the caller rebuilds the
 * index and saves it over the old one.
 */
export async function openVectorIndex(options: VectorIndexOptions, file: BlockFile): Promise<OpenedVectorIndex | null> {
  const resolved = resolveVectorIndexOptions(options);
  const opened = await openSaved(resolved, file);
  if (opened === null) return null;
  const { saved, space, state } = opened;
  const graphFrom = saved.header.hasGraph ? 0 : resolved.graphFrom;
  const index = createIndex({ options: resolved, graphFrom, space }, state, (parts) => {
    const saver = createSaver(parts);
    saver.noteSaved(file, saved);
    return saver;
  });
  return { index, seq: saved.header.seq };
}
