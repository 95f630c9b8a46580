import type { KeyScope } from '../keys/key-store.ts';
import type { Metadata } from '../stored/types.ts';

export type BatchStatus =
  'validating' | 'failed' | 'in_progress' | 'finalizing' | 'completed' | 'expired' | 'cancelling' | 'cancelled';

/** Why a line of the input file cannot be a request. */
export interface LineError {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  /** From 1; null: the whole file. */
  readonly line: number | null;
}

/** A batch: times are milliseconds since 1970. */
export interface Batch {
  readonly id: string;
  readonly endpoint: string;
  readonly status: BatchStatus;
  readonly inputFileId: string;
  /** Chosen when the batch is created, so that its end can be written twice; the files exist when it has ended. */
  readonly outputFileId: string;
  readonly errorFileId: string;
  /** The key that created it: its lines run with this key, and fail once it is revoked. */
  readonly keyId: string | null;
  readonly scopes: readonly KeyScope[];
  readonly metadata: Metadata;
  readonly createdMs: number;
  /** The end of the completion window. */
  readonly windowEndMs: number;
  /** How long the results are kept. */
  readonly retentionMs: number;
  /** When each status began. */
  readonly times: Readonly<Partial<Record<BatchStatus, number>>>;
  /** Lines of the input file, empty ones included. */
  readonly numFileLines: number;
  /** Lines with requests. */
  readonly numRequests: number;
  readonly numSucceeded: number;
  /** Lines in the error file: failed, expired or cancelled. */
  readonly numFailed: number;
  /** Whether the window ended before all lines had run; set before their errors are written. */
  readonly isExpired: boolean;
  readonly outputBytes: number;
  readonly errorBytes: number;
  readonly errors: readonly LineError[];
  /** The process that runs it; null: none. */
  readonly lease: { readonly owner: string; readonly untilMs: number } | null;
}

export const BATCH_WINDOW_MS = 86_400_000;
/** As long as OpenAI keeps files of batches. */
export const MAX_RETENTION_MS = 30 * 86_400_000;

const OPEN: ReadonlySet<BatchStatus> = new Set(['validating', 'in_progress', 'finalizing', 'cancelling']);
export const isOpen = ({ status }: Pick<Batch, 'status'>): boolean => OPEN.has(status);
