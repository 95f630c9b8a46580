import type { PageTier } from './types.ts';

/** The memory that pages live in; `LoadedModel.pages` of the models layer is one. */
export interface PageMemory {
  /** Tokens in a page. */
  readonly pageTokens: number;
  readonly pageBytes: number;
  readonly packed: { readonly precision: string; readonly pageBytes: number; readonly unitBytes: number } | null;
  packPages(moves: readonly { readonly from: number; readonly to: number }[]): Promise<void>;
  /** A view, only while no step runs. */
  bytesOf(tier: PageTier, index: number): Uint8Array;
}

/** Copies a page to another place of the same tier. */
export function copyPage(memory: PageMemory, tier: PageTier, from: number, to: number): void {
  memory.bytesOf(tier, to).set(memory.bytesOf(tier, from));
}
