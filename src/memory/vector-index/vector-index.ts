import { RuvLLMError } from '../../core/errors.ts';
import { checkInteger } from '../../core/options.ts';
import { createRandom } from '../../core/random.ts';
import { arenaBytesFor, columnStrides } from './columns.ts';
import { createDirtyPages } from './dirty-pages.ts';
import { createGraph, type Graph, type GraphState } from './graph.ts';
import { checkIntegrity } from './integrity.ts';
import { batchSize, linkNodes, readVector } from './link-nodes.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';
import { createRepair, type Repair, type RepairContext } from './repair.ts';
import { createSaver, type Saver } from './saver.ts';
import { searchVectors } from './search.ts';
import { createSlotTable, FREE, LIVE } from './slot-table.ts';
import { MAX_K, type VectorIndex, type VectorQuery } from './types.ts';
import { checkKey, hashVector, roundToBytes, writeVector } from './vector-input.ts';
import { copySpace, createVectorSpace, fittingCapacity, type VectorSpace } from './vector-space.ts';

const GROWTH = 2;
/** Further nodes that a write links while a set is turned into a graph. */
const LINKS_PER_WRITE = 8;
/** Rows that a write repairs. */
const ROWS_PER_WRITE = 16;
const DEFAULT_EF = 64;
/** A key in two `Map`s. */
const TABLE_BYTES = 80;
/** Vectors of `addMany` stored before linking. */
const MANY = 1024;

interface IndexParts {
  readonly options: ResolvedVectorIndexOptions;
  /** Number of vectors from which on there is a graph. */
  readonly graphFrom: number;
  readonly space: VectorSpace;
}

export interface OpenedState {
  readonly end: number;
  readonly graph: GraphState | null;
  readonly twins: Float64Array;
  readonly waiting: readonly number[];
}

export function createIndex(parts: IndexParts, opened: OpenedState | null, makeSaver = createSaver): VectorIndex {
  const { options, graphFrom } = parts;
  const { dim, metric, pause } = options;
  let space = parts.space;
  let isDisposed = false;
  const dirty = createDirtyPages((column) => columnStrides(options, space.hasGraph)[column]);
  const random = createRandom(options.seed);
  const slots = createSlotTable(
    () => space.columns,
    (slot) => {
      for (const column of ['keys', 'hashes', 'states'] as const) dirty.mark(column, slot);
    },
  );
  /** Slots not yet in the graph. */
  const waiting = new Set<number>(opened?.waiting);
  let graph: Graph | null = null;
  let repair: Repair | null = null;

  const startGraph = (state?: GraphState): void => {
    graph = createGraph(() => space, options, random, dirty, state);
    repair = createRepair(repairContext());
  };
  const repairContext = (): RepairContext => ({
    space: () => space,
    graph: graph!,
    options,
    slots,
    isLinked: (slot) => space.columns.states[slot] !== FREE && !waiting.has(slot),
    onDeadLink: () => repair!.noteDeadLink(),
  });

  if (opened !== null) slots.restore(opened.end, opened.twins);
  if (space.hasGraph) startGraph(opened?.graph ?? undefined);

  const checkUsable = (): void => {
    if (isDisposed) throw new RuvLLMError('not_loaded', 'the vector index was disposed');
  };

  const moveTo = async (needed: number, hasGraph: boolean): Promise<void> => {
    const wanted = Math.max(needed, space.capacity >= needed ? space.capacity : Math.ceil(space.capacity * GROWTH));
    const capacity = fittingCapacity(options, wanted, needed, hasGraph);
    const next = await createVectorSpace(options, capacity, hasGraph);
    checkUsable();
    // Another call was faster.
    if (space.capacity >= capacity && space.hasGraph === hasGraph) return next.pack.dispose();
    const old = space;
    copySpace(old, next);
    space = next;
    if (hasGraph && graph === null) {
      for (let slot = 0; slot < slots.end; slot++) if (space.columns.states[slot] === LIVE) waiting.add(slot);
      startGraph();
    }
    await old.pack.dispose();
  };

  const needsGraph = (numNew: number): boolean => space.hasGraph || slots.numLive + numNew > graphFrom;
  const hasRoom = (numNew: number): boolean =>
    space.capacity - slots.numLive - slots.numDead >= numNew && needsGraph(numNew) === space.hasGraph;
  const makeRoom = async (numNew: number): Promise<void> => {
    while (!hasRoom(numNew)) await moveTo(slots.numLive + slots.numDead + numNew, needsGraph(numNew));
  };

  const rounded = new Int8Array(dim);
  const equals = (slot: number, values: Float32Array): boolean => {
    const { vectors, codes, scales } = space.columns;
    const [stored, given] = vectors.length > 0 ? [vectors, values] : [codes, rounded];
    if (given === rounded && roundToBytes(values, rounded) !== scales[slot]) return false;
    for (let i = 0, at = slot * dim; i < dim; i++, at++) if (stored[at] !== given[i]) return false;
    return true;
  };

  const removeKey = (key: number): void => {
    const slot = slots.detach(key);
    if (slot < 0) return;
    if (graph === null || waiting.delete(slot)) slots.release(slot);
    else repair!.noteChange();
  };

  /** Requires room; `values` are normalized. */
  const put = (key: number, values: Float32Array): void => {
    const hash = hashVector(values);
    const twin = slots.slotByHash(hash);
    const isTwin = twin !== undefined && equals(twin, values);
    const old = slots.slotOf(key);
    if (old !== undefined) {
      if (isTwin && twin === old) return;
      removeKey(key);
    }
    if (isTwin) {
      slots.attach(twin, key);
      return;
    }
    const slot = slots.nextFree(space.capacity);
    slots.take(slot, hash, key);
    const { vectors, codes, scales } = space.columns;
    if (vectors.length > 0) vectors.set(values, slot * dim);
    if (codes.length > 0) scales[slot] = roundToBytes(values, codes.subarray(slot * dim, (slot + 1) * dim));
    for (const column of ['vectors', 'codes', 'scales'] as const) dirty.mark(column, slot);
    if (graph !== null) waiting.add(slot);
  };

  /** The newest first, so that a write's own vector is in the graph when it returns. */
  const linkWaiting = (most: number): void => {
    const all = [...waiting];
    const batch = all.slice(Math.max(0, all.length - most));
    for (const slot of batch) graph!.place(slot);
    linkNodes(repairContext(), batch);
    for (const slot of batch) waiting.delete(slot);
    for (let i = 0; i < batch.length; i++) repair!.noteChange();
  };
  const numLinked = (): number => slots.numLive + slots.numDead - waiting.size;

  const linkAll = async (): Promise<void> => {
    if (graph === null) return;
    while (waiting.size > 0) {
      linkWaiting(batchSize(numLinked()));
      await pause();
      checkUsable();
    }
  };

  const maintain = (): void => {
    if (graph === null) return;
    if (waiting.size > 0) linkWaiting(Math.min(1 + LINKS_PER_WRITE, batchSize(numLinked())));
    repair!.step(ROWS_PER_WRITE);
  };

  const saver: Saver = makeSaver({
    options,
    space: () => space,
    slots,
    graph: () => graph,
    waiting: () => [...waiting],
    dirty,
  });

  return {
    dim,
    metric,
    get size() {
      return slots.size;
    },
    get hasGraph() {
      return graph !== null;
    },

    async add(key, vector) {
      checkUsable();
      checkKey(key);
      const values = new Float32Array(dim);
      writeVector(vector, dim, metric, values);
      // No await if there is room: the write is done when `add` returns.
      while (!hasRoom(1)) await makeRoom(1);
      put(key, values);
      maintain();
    },

    async addMany(keys, vectors) {
      checkUsable();
      if (!(vectors instanceof Float32Array) || vectors.length !== keys.length * dim) {
        const length = (vectors as { length?: number } | null)?.length;
        throw new RuvLLMError(
          'invalid_option',
          `${keys.length} keys require ${keys.length * dim} values, got ${length}`,
        );
      }
      keys.forEach(checkKey);
      if (new Set(keys).size !== keys.length) throw new RuvLLMError('invalid_option', 'a key occurs twice');
      const values = new Float32Array(dim);
      const valuesOf = (i: number): void => writeVector(vectors.subarray(i * dim, (i + 1) * dim), dim, metric, values);
      keys.forEach((_, i) => valuesOf(i));
      await makeRoom(keys.length);
      for (let first = 0; first < keys.length; first += MANY) {
        const some = keys.slice(first, first + MANY);
        await makeRoom(some.length); // other writes run in between
        some.forEach((key, i) => {
          valuesOf(first + i);
          put(key, values);
        });
        await linkAll();
      }
      for (let isDue = repair?.isDue === true; isDue; isDue = repair?.isDue === true) {
        repair!.step(MANY);
        await pause();
        checkUsable();
      }
    },

    has: (key) => slots.slotOf(key) !== undefined,

    get(key) {
      checkUsable();
      const slot = slots.slotOf(key);
      if (slot === undefined) return null;
      const values = new Float32Array(dim);
      readVector(space, slot, values);
      return values;
    },

    delete(key) {
      checkUsable();
      if (slots.slotOf(key) === undefined) return false;
      removeKey(key);
      maintain();
      return true;
    },

    search({ vector, k, ef = DEFAULT_EF, filter }: VectorQuery) {
      checkUsable();
      checkInteger(k, 'k', 1, MAX_K);
      checkInteger(ef, 'ef', 1, MAX_K);
      writeVector(vector, dim, metric, space.work.query.subarray(0, dim));
      const context = { space, slots, options, graph, waiting: [...waiting] };
      return searchVectors(context, { k, ef, filter: filter ?? null });
    },

    save(file, seq) {
      checkUsable();
      return saver.save(file, seq);
    },

    get memoryBytes() {
      return arenaBytesFor(options, slots.end, space.hasGraph) + slots.size * TABLE_BYTES;
    },

    checkIntegrity() {
      checkUsable();
      checkIntegrity(space, slots, graph, waiting);
    },

    async dispose() {
      if (isDisposed) return;
      isDisposed = true;
      await space.pack.dispose();
    },
  };
}
