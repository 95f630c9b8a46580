import type { SerializedError } from '../../core/errors.ts';
import type { SampledToken, SamplingParams } from '../../sampling/types.ts';
import type { TokenTableData, VocabularyData } from '../constraints.ts';

/** A text under a grammar that goes on in the sampler thread. */
export interface SlowText {
  /** The JSON text of a `GrammarSource`. */
  readonly grammar: string;
  /** Automata of the grammar prepared in another thread; null: none. */
  readonly automata: Int32Array | null;
  readonly sampling: SamplingParams & { readonly seed: number };
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  readonly stopIds: readonly number[];
  /** Tokens that were generated before, and the random numbers that were drawn for them. */
  readonly generatedIds: readonly number[];
  readonly numDraws: number;
}

/** Messages to the sampler thread; delivered in order, after one of the first two. */
export type SamplerTask =
  | { readonly type: 'vocabulary'; readonly vocabulary: VocabularyData }
  | { readonly type: 'tokenTable'; readonly table: TokenTableData }
  | { readonly type: 'open'; readonly id: number; readonly text: SlowText }
  | { readonly type: 'sample'; readonly id: number; readonly logits: Float32Array<ArrayBuffer> }
  | { readonly type: 'close'; readonly id: number };

/** The reply to a `sample`. */
export type SamplerAnswer =
  { readonly id: number; readonly token: SampledToken } | { readonly id: number; readonly error: SerializedError };

export interface SamplerThread {
  post(task: SamplerTask): void;
  dispose(): Promise<void>;
}

export interface SamplerThreadHandlers {
  onAnswer(answer: SamplerAnswer): void;
  /** The thread is gone, with all its texts. */
  onLoss(error: Error): void;
}

export type SpawnSamplerThread = (handlers: SamplerThreadHandlers) => SamplerThread;
