import {
  booleanOption,
  choiceOption,
  instanceOption,
  integerOption,
  type OptionReader,
  resolveOptions,
} from '../../core/options.ts';
import { type KernelPackFactory, MAX_VECTOR_DIM } from '../../kernels/contract.ts';
import type { Metric } from './types.ts';

/** Vectors of a graph search: exact, or as bytes, which are read four times as fast. */
export type VectorStorage = 'f32' | 'int8';

export interface VectorIndexOptions {
  readonly kernels: KernelPackFactory;
  /** Default 768. */
  readonly dim?: number;
  /** Default cosine; vectors are normalized then. */
  readonly metric?: Metric;
  /** Default f32. */
  readonly storage?: VectorStorage;
  /** Whether int8 storage also keeps exact vectors, which rank the best results. Default true. */
  readonly keepsExact?: boolean;
  /** Threads of `addMany`; the graph does not depend on it. Default 1. */
  readonly numThreads?: number;
  /** Neighbours of a new node; nodes have at most twice as many. Default 32; 16 suffices below 50,000 vectors. */
  readonly m?: number;
  /** Candidates for the neighbours. Default 200; 100 with m 16. */
  readonly efConstruction?: number;
  /** Number of vectors from which on there is a graph. Default 4096. */
  readonly graphFrom?: number;
  /** The same seed and calls give the same graph. Default 1. */
  readonly seed?: number;
  /** Initial capacity. Default 256. */
  readonly capacity?: number;
  /** Awaited during long calls, so that others can run. Default: none. */
  readonly pause?: () => Promise<void>;
}

export type ResolvedVectorIndexOptions = Readonly<Required<VectorIndexOptions>>;

/** An exact scan of this many vectors of 768 values takes 1 ms, a graph search a fifth. */
const GRAPH_FROM = 4096;

const isFactory = (value: unknown): value is KernelPackFactory =>
  typeof (value as KernelPackFactory | null)?.create === 'function';

const isPause = (value: unknown): value is () => Promise<void> => typeof value === 'function';
const readPause = instanceOption('a function', isPause);
const pauseOption: OptionReader<() => Promise<void>> = (value, name) =>
  value === undefined ? async () => {} : readPause(value, name);

export function resolveVectorIndexOptions(options: VectorIndexOptions): ResolvedVectorIndexOptions {
  return resolveOptions<Required<VectorIndexOptions>>('vector index', options, {
    kernels: instanceOption('a kernel pack factory', isFactory),
    dim: integerOption(768, 1, MAX_VECTOR_DIM),
    metric: choiceOption<Metric>('cosine', ['cosine', 'dot', 'l2']),
    storage: choiceOption<VectorStorage>('f32', ['f32', 'int8']),
    keepsExact: booleanOption(true),
    numThreads: integerOption(1, 1, 256),
    m: integerOption(32, 2, 128),
    efConstruction: integerOption(200, 8, 2000),
    graphFrom: integerOption(GRAPH_FROM, 0, 2 ** 30),
    seed: integerOption(1, 0, Number.MAX_SAFE_INTEGER),
    capacity: integerOption(256, 1, 2 ** 30),
    pause: pauseOption,
  });
}
