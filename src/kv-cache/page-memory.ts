import type { PageTier } from './types.ts';

/** The memory of the pages, such as `LoadedModel.pages`. */
export interface PageMemory {
  readonly pageTokens: number;
  readonly pageBytes: number;
  readonly packed: { readonly precision: string; readonly pageBytes: number; readonly unitBytes: number } | null;
  packPages(moves: readonly { readonly from: number; readonly to: number }[]): Promise<void>;
  /** Copies a page within its tier, while no step runs. */
  copyPage(tier: PageTier, from: number, to: number): void;
  /** A view, valid only while no step runs. */
  bytesOf(tier: PageTier, index: number): Uint8Array;
}
