import type { Arena, KernelPack, WeightImages } from './contract.ts';
import type { TensorTypeName } from '../core/tensor-type.ts';
import type { Offset } from './arena-alignment.ts';

/** A word of a record: an integer or offset, or a number that kernels read as a float. */
export type Word = number | { f32: number };

/**
 * The relation to the next operation: none (it may start immediately), a barrier, or a chain: the next one works on the
 * same tokens and needs only this one's result for each. Packs may treat a chain as a barrier.
 */
export type Follow = 'nothing' | 'barrier' | 'chain';

/** Layout and arithmetic of a tensor type in a pack. */
export interface RecordedLayout {
  readonly id: number;
  /** Columns per block of the layout; a matrix's columns are a multiple of it. */
  readonly blockCols: number;
  /** Bytes of one block of a group of rows. */
  readonly blockBytes: number;
  /** Index of the activation rounding; null: plain f32. */
  readonly activation: number | null;
  /** Tokens that the kernels process side by side. */
  readonly tileTokens: number;
  /** Bytes of rounded activations per column and token. */
  readonly activationBytesPerCol: number;
}

/** The parts that differ between recorded packs. */
export interface RecordedPackParts {
  readonly name: string;
  readonly numThreads: number;
  readonly arena: Arena;
  readonly layouts: Readonly<Record<TensorTypeName, RecordedLayout>>;
  /** Rows interleaved in one group. */
  readonly groupRows: number;
  readonly maxCols: number;
  readonly maxTokens: number;
  /** Buffer for raw rows between the file and the packed layout. */
  readonly staging: { readonly at: Offset; readonly sizeBytes: number };
  /** int32: kernels set it if the layout cannot hold a scale of the file. */
  readonly refusedAt: Offset;
  /** Buffers of rounded activations, by rounding. */
  readonly roundedAt: readonly Offset[];
  /** Rounded activations of one pass over a chunk of rows, sized to stay in cache with the weights. */
  readonly passBytes: number;
  /** Whether the matmul kernels apply the gate. */
  readonly isFusing: boolean;
  /** Row groups per chunk of a matmul. */
  groupsPerChunk(numGroups: number, numTokens: number): number;
  /** `numTokens`: the number by which work on tokens is split. */
  record(opcode: number, words: readonly Word[], follow?: Follow, numTokens?: number): void;
  /** Runs the recorded operations now. */
  run(): void;
  readonly prepare?: KernelPack['prepare'];
  readonly images?: Omit<WeightImages, 'placeMatrix'>;
  dispose(): Promise<void>;
}
