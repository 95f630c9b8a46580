import type { PutRecord } from './types.ts';

/** Records that were built from plain data, and what the caller must know of them. */
export interface BuiltRecords<R> {
  readonly records: readonly PutRecord[];
  readonly result: R;
}
