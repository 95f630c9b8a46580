import type { Arena, KernelPack, WeightImages } from './contract.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import type { Offset } from './arena-alignment.ts';

/** A word of a record: an integer or offset, or a number the kernels read as a float. */
export type Word = number | { f32: number };

/**
 * What follows an operation: nothing (the next may begin at once), a barrier, or a chain: the next works on the same tokens
 * and needs of each only what this one made of it. Packs may treat a chain as a barrier.
 */
export type Follow = 'nothing' | 'barrier' | 'chain';

/** How a pack keeps and computes a tensor type. */
export interface RecordedLayout {
  readonly id: number;
  /** Columns per block of the layout; a matrix's columns are a multiple of it. */
  readonly blockCols: number;
  /** Bytes of one block of a group of rows. */
  readonly blockBytes: number;
  /** Which rounding of activations the layout meets; null: none, plain f32. */
  readonly activation: number | null;
  /** Tokens that go through the kernels side by side when there are several. */
  readonly tileTokens: number;
  /** Bytes of rounded activations per column and token. */
  readonly activationBytesPerCol: number;
}

/** What differs between packs that record. */
export interface RecordedPackParts {
  readonly name: string;
  readonly numThreads: number;
  readonly arena: Arena;
  readonly layouts: Readonly<Record<TensorTypeName, RecordedLayout>>;
  /** Rows kept together. */
  readonly groupRows: number;
  readonly maxCols: number;
  readonly maxTokens: number;
  /** Raw rows on their way from the file into a packed layout. */
  readonly staging: { readonly at: Offset; readonly sizeBytes: number };
  /** int32: kernels set it when a scale in the file is no number that their layout can hold. */
  readonly refusedAt: Offset;
  /** Where activations go, by rounding. */
  readonly roundedAt: readonly Offset[];
  /** Rounded activations of one pass over a chunk of rows: what stays in a near cache beside the weights. */
  readonly passBytes: number;
  /** Whether the matmul kernels apply a gate themselves. */
  readonly isFusing: boolean;
  /** Row groups of a matmul that a thread takes at a time. */
  groupsPerChunk(numGroups: number, numTokens: number): number;
  /** `numTokens`: what the work of an operation on tokens is cut by. */
  record(opcode: number, words: readonly Word[], follow?: Follow, numTokens?: number): void;
  /** Runs what was recorded, now. */
  run(): void;
  readonly prepare?: KernelPack['prepare'];
  /** What of `images` is the pack's own. */
  readonly images?: Omit<WeightImages, 'placeMatrix'>;
  dispose(): Promise<void>;
}
