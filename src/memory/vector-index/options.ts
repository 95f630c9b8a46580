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

/** How the vectors of a graph search are held: as they are, or as bytes, which are read four times as fast. */
export type VectorStorage = 'f32' | 'int8';

export interface VectorIndexOptions {
  readonly kernels: KernelPackFactory;
  /** Default 768. */
  readonly dim?: number;
  /** Default cosine; vectors are normalized then. */
  readonly metric?: Metric;
  /** Default f32. */
  readonly storage?: VectorStorage;
  /** Whether int8 storage has the exact vectors beside it: the best are ranked by them. Default true. */
  readonly keepsExact?: boolean;
  /** Threads of `addMany`. Default 1; the graph is the same with any number. */
  readonly numThreads?: number;
  /** Neighbours a new node looks for; nodes have twice as many at most. Default 32; 16 suffices below some 50 000. */
  readonly m?: number;
  /** Candidates these are chosen from. Default 200; 100 with m 16. */
  readonly efConstruction?: number;
  /** From how many vectors on there is a graph (`createVectorIndex`). Default 4096. */
  readonly graphFrom?: number;
  /** Default 1: with the same seed and the same calls, the same graph. */
  readonly seed?: number;
  /** Room from the start, for what is known to come. Default 256. */
  readonly capacity?: number;
  /** Called now and then by long calls, so that others have a turn. Default: never interrupted. */
  readonly pause?: () => Promise<void>;
}

export type ResolvedVectorIndexOptions = Readonly<Required<VectorIndexOptions>>;

/** For sets that stay small. */
export const SMALL_GRAPH = { m: 16, efConstruction: 100 } as const;

/** An exact scan of so many vectors of 768 values takes as long as a millisecond; a graph search a fifth of it. */
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
