import type { PackedKvPrecision } from '../kernels/contract.ts';

/** How older pages are kept: `auto` is q8, whose loss of quality is below that of weights in eight bits. */
export type KvPacking = 'auto' | 'off' | 'q8' | 'q4';

/** Tokens at the end of a sequence that stay unpacked: attention looks mostly at recent ones. */
export const FLOAT_TAIL_TOKENS = 256;

export interface PackingChoice {
  readonly packed: PackedKvPrecision | null;
  /** For people. */
  readonly reason: string;
}

export function choosePacking(packing: KvPacking): PackingChoice {
  if (packing === 'off') return { packed: null, reason: 'off' };
  if (packing === 'auto') return { packed: 'q8', reason: 'q8 by default' };
  return { packed: packing, reason: `${packing}, as configured` };
}
