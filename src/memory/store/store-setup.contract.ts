// Records, ids and vectors shared by the parts of the contract suite.
import { expect } from 'vitest';
import type { ErrorCode } from '../../core/errors.ts';
import type { MemoryStore, PutRecord } from '../types.ts';

export interface StoreHarness {
  readonly store: MemoryStore;
  /** The store's clock. */
  readonly clock: { ms: number };
  /** Closes the store and opens it again; null for one that remembers nothing. */
  readonly reopen: (() => Promise<MemoryStore>) | null;
}

export type OpenStore = () => Promise<StoreHarness>;

export const START_MS = 1_700_000_000_000;

/** A UUIDv7 by its number. */
export const idOf = (i: number): string => `018bcfe5-6800-7000-8000-${i.toString(16).padStart(12, '0')}`;

export const vectorOf = (...values: number[]): Float32Array => Float32Array.from(values);

/** Directions that differ, the same for the same number. */
export function directionOf(i: number, dim = 8): Float32Array {
  return Float32Array.from({ length: dim }, (_, j) => Math.sin(1 + i * 12.9898 + j * 78.233 + i * j * 0.37));
}

export function recordOf(i: number, change: Partial<PutRecord> = {}): PutRecord {
  return { id: idOf(i), tenant: 'alpha', kind: 'fact', expiresMs: null, fields: {}, body: { i }, vector: null, space: null, ...change }; // prettier-ignore
}

export async function expectRefusal(promise: Promise<unknown>, code: ErrorCode, text = ''): Promise<void> {
  await expect(promise).rejects.toMatchObject({ name: 'RuvLLMError', code, message: expect.stringContaining(text) });
}
