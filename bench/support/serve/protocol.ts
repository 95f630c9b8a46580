import type { EngineStats } from 'ruvllm';

/** The kind of a server process. */
export type ServedKind =
  /** Hono alone: parses the body and answers with as many bytes as the others. */
  | { kind: 'plain' }
  /** Everything but a model: answers one word at once. Keys are files, as in `ruvllm serve`; null: open. */
  | { kind: 'echo'; keyFolder: string | null }
  /** A real model for `numSequences` of `maxContext` tokens. */
  | { kind: 'model'; path: string; numSequences: number; maxContext: number };

export type ServedRequest =
  | { do: 'start'; what: ServedKind }
  /** With `collect` garbage is collected first, so that only held memory counts. */
  | { do: 'measure'; collect: boolean }
  | { do: 'stop' };

/** Measurements of a server process. */
export interface Measured {
  readonly rssBytes: number;
  readonly heapBytes: number;
  /** The longest stall of its main thread since the last collection, beyond its 1 ms timer. */
  readonly loopMaxMs: number;
  readonly openRequests: number;
  /** Null: it has no model. */
  readonly engine: EngineStats | null;
}

export interface ServedAnswer {
  readonly port?: number;
  readonly measured?: Measured;
  /** Of a created key, if it has keys. */
  readonly token?: string;
  readonly error?: string;
}
