import { RuvLLMError } from '../../core/errors.ts';
import type { GraphLanes, KernelPack, VectorTable } from '../../kernels/contract.ts';
import { graphLaneBytes, MAX_GRAPH_WIDTH } from '../../kernels/contract.ts';
import {
  arenaBytesFor,
  COLUMNS,
  type ColumnName,
  columnStrides,
  numUpperRows,
  WORK,
  type WorkName,
  workSizes,
} from './columns.ts';
import type { ResolvedVectorIndexOptions } from './options.ts';

/** Absent columns are empty. */
export interface Columns {
  readonly vectors: Float32Array;
  readonly codes: Int8Array;
  readonly scales: Float32Array;
  /** 0: none. */
  readonly keys: Float64Array;
  readonly hashes: Uint32Array;
  readonly states: Uint8Array;
  readonly links: Int32Array;
  /** Level + 1; 0: never in the graph. */
  readonly levels: Uint8Array;
  readonly upperAt: Int32Array;
  readonly upper: Int32Array;
}

interface WorkArrays {
  readonly query: Float32Array;
  readonly ids: Int32Array;
  readonly scores: Float32Array;
  readonly lists: Int32Array;
  readonly candidates: Int32Array;
  readonly picked: Int32Array;
}

/** A kernel pack and its arena. It does not grow: the data is copied to a larger one. */
export interface VectorSpace {
  readonly capacity: number;
  readonly hasGraph: boolean;
  readonly pack: KernelPack;
  readonly columns: Columns;
  readonly work: WorkArrays;
  readonly workAt: Readonly<Record<WorkName, number>>;
  readonly columnAt: Readonly<Record<ColumnName, number>>;
  /** For searches. */
  readonly table: VectorTable;
  /** For links and the final order. */
  readonly exactTable: VectorTable;
  readonly lanes: GraphLanes;
  bytesOf(column: ColumnName): Uint8Array;
  finish(): void;
}

function checkFits(options: ResolvedVectorIndexOptions, capacity: number, neededBytes: number): void {
  const limitBytes = options.kernels.maxArenaBytes;
  if (neededBytes <= limitBytes) return;
  throw new RuvLLMError(
    'out_of_memory',
    `${capacity} vectors of ${options.dim} values require ${neededBytes} bytes, ${options.kernels.name} kernels address ${limitBytes}`,
    { data: { neededBytes, limitBytes } },
  );
}

/** `capacity`, or less if the kernels cannot address it, but at least `needed`. */
export function fittingCapacity(
  options: ResolvedVectorIndexOptions,
  capacity: number,
  needed: number,
  hasGraph: boolean,
): number {
  // 64 MiB are more than any pack needs for itself.
  const fits = (count: number): boolean =>
    arenaBytesFor(options, count, hasGraph) + 2 ** 26 <= options.kernels.maxArenaBytes;
  let most = capacity;
  while (most > needed && !fits(most)) most = Math.max(needed, Math.floor(most * 0.9));
  if (!fits(most)) checkFits(options, most, arenaBytesFor(options, most, hasGraph) + 2 ** 26);
  return most;
}

export async function createVectorSpace(
  options: ResolvedVectorIndexOptions,
  capacity: number,
  hasGraph: boolean,
): Promise<VectorSpace> {
  const { kernels, dim, metric, storage, m } = options;
  const arenaBytes = arenaBytesFor(options, capacity, hasGraph);
  checkFits(options, capacity, arenaBytes);
  const numThreads = hasGraph ? options.numThreads : 1;
  const pack = await kernels.create({ arenaBytes, numThreads, maxTokens: 1, maxCols: dim });
  const { arena } = pack;
  if (pack.finish === undefined) {
    await pack.dispose();
    throw new RuvLLMError('unsupported', `searches are synchronous, which ${pack.name} kernels do not support`);
  }
  const finish = pack.finish.bind(pack);

  const strides = columnStrides(options, hasGraph);
  const rowsOf = (name: ColumnName): number => (name === 'upper' ? numUpperRows(capacity, m) : capacity);
  const columnAt = Object.fromEntries(
    COLUMNS.map((name) => [name, strides[name] === 0 ? 0 : arena.allocate(strides[name] * rowsOf(name), name)]),
  ) as Record<ColumnName, number>;
  const sizes = workSizes(options, capacity, hasGraph);
  const workAt = Object.fromEntries(
    WORK.map((name) => [name, sizes[name] === 0 ? 0 : arena.allocate(sizes[name], name)]),
  ) as Record<WorkName, number>;

  const bytesOf = (name: ColumnName): Uint8Array => arena.u8(columnAt[name], strides[name] * rowsOf(name));
  const f32 = (name: ColumnName): Float32Array => arena.f32(columnAt[name], bytesOf(name).length / 4);
  const i32 = (name: ColumnName): Int32Array => arena.i32(columnAt[name], bytesOf(name).length / 4);
  const kernelMetric = metric === 'l2' ? 'l2' : 'dot';
  const exact: VectorTable = { vectors: columnAt.vectors, dim, format: 'f32', scales: null, metric: kernelMetric };
  const bytes: VectorTable = {
    vectors: columnAt.codes,
    dim,
    format: 'int8',
    scales: columnAt.scales,
    metric: kernelMetric,
  };
  const table = storage === 'int8' ? bytes : exact;
  const codes = bytesOf('codes');
  const keys = bytesOf('keys');
  const hashes = bytesOf('hashes');
  return {
    capacity,
    hasGraph,
    pack,
    columns: {
      vectors: f32('vectors'),
      codes: new Int8Array(codes.buffer, codes.byteOffset, codes.length),
      scales: f32('scales'),
      keys: new Float64Array(keys.buffer, keys.byteOffset, capacity),
      hashes: new Uint32Array(hashes.buffer, hashes.byteOffset, capacity),
      states: bytesOf('states'),
      links: i32('links'),
      levels: bytesOf('levels'),
      upperAt: i32('upperAt'),
      upper: i32('upper'),
    },
    work: {
      query: arena.f32(workAt.query, sizes.query / 4),
      ids: arena.i32(workAt.ids, sizes.ids / 4),
      scores: arena.f32(workAt.scores, sizes.scores / 4),
      lists: arena.i32(workAt.lists, sizes.lists / 4),
      candidates: arena.i32(workAt.candidates, sizes.candidates / 4),
      picked: arena.i32(workAt.picked, sizes.picked / 4),
    },
    workAt,
    columnAt,
    table,
    exactTable: strides.vectors === 0 ? table : exact,
    lanes: {
      at: workAt.lanes,
      laneBytes: hasGraph ? graphLaneBytes(capacity, MAX_GRAPH_WIDTH, 2 * m) : 0,
      numNodes: capacity,
    },
    bytesOf,
    finish,
  };
}

export function copySpace(from: VectorSpace, to: VectorSpace): void {
  for (const name of COLUMNS) {
    const source = from.bytesOf(name);
    if (source.length > 0) to.bytesOf(name).set(source);
  }
}
