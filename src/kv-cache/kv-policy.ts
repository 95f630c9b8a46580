import type { PackedKvPrecision } from '../kernels/contract.ts';

/** How pages behind the tail are kept. */
export type KvPacking = 'auto' | 'off' | 'q8' | 'q4';

export interface PackingChoice {
  readonly packed: PackedKvPrecision | null;
  readonly reason: string;
}

export function choosePacking(wish: KvPacking, _measured: null): PackingChoice {
  if (wish === 'off') return { packed: null, reason: 'as asked' };
  return { packed: wish === 'auto' ? 'q8' : wish, reason: 'not measured' };
}
