import type { SerializedError } from '../../../core/errors.ts';
import type { MemoryStore } from '../../types.ts';

export type StoreMethod = keyof MemoryStore;

/** Everything a store can be asked, so that a method nobody carries over does not compile. */
export const STORE_METHODS: Readonly<Record<StoreMethod, true>> = {
  put: true,
  get: true,
  find: true,
  count: true,
  nearest: true,
  delete: true,
  putEdges: true,
  edgesOf: true,
  deleteEdges: true,
  sweepExpired: true,
  eraseTenant: true,
  stats: true,
  checkIntegrity: true,
  close: true,
};

export interface StoreCall {
  readonly callId: number;
  readonly method: StoreMethod;
  readonly args: readonly unknown[];
}

export type StoreReply =
  { readonly callId: number; readonly value: unknown } | { readonly callId: number; readonly error: SerializedError };
