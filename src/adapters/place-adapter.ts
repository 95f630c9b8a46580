import { RuvLLMError } from '../core/errors.ts';
import { alignArena, type Arena, ARENA_ALIGNMENT, MAX_RANK, type Offset } from '../kernels/contract.ts';
import { siteOf } from './target-shapes.ts';
import type { LowRankFactors } from './types.ts';

/** Memory layout of an adapter: slabs of one size, each contiguous, in any place. */
export interface PlacementPlan {
  readonly numSlabs: number;
  /** Bytes used by the pieces, including alignment. */
  readonly usedBytes: number;
  /** True if a slab is too small for a matrix: sums are then rounded in another order. */
  readonly isSplit: boolean;
  readonly factors: readonly PlannedFactors[];
}

interface PlannedFactors {
  readonly factors: LowRankFactors;
  readonly parts: readonly {
    readonly firstRank: number;
    readonly rank: number;
    readonly a: Place;
    readonly b: Place;
  }[];
}

interface Place {
  readonly slab: number;
  readonly offset: number;
}

/** One matrix's weights in the arena; `AdapterWeights` of the models. */
export interface PlacedFactors {
  readonly site: string;
  readonly numCols: number;
  readonly numRows: number;
  readonly parts: readonly { readonly rank: number; readonly scale: number; readonly a: Offset; readonly b: Offset }[];
}

/**
 * Assigns every factor a place in slabs of `slabBytes`. A rank beyond the limit of an operation, or a matrix larger
 * than a slab, is split into several of lower rank, whose products add up.
 */
export function planPlacement(factors: readonly LowRankFactors[], slabBytes: number): PlacementPlan {
  // A slab may begin anywhere, but floats must be aligned.
  const usableBytes = slabBytes % ARENA_ALIGNMENT === 0 ? slabBytes : slabBytes - ARENA_ALIGNMENT;
  const slabs: number[] = [];
  let isSplit = false;

  function place(sizeBytes: number): Place {
    const needed = alignArena(sizeBytes);
    let slab = slabs.findIndex((used) => used + needed <= usableBytes);
    if (slab < 0) slab = slabs.push(0) - 1;
    const offset = slabs[slab]!;
    slabs[slab] = offset + needed;
    return { slab, offset };
  }

  const planned = factors.map((entry) => {
    const { numCols, numRows, rank } = entry;
    const rankBytes = 4 * Math.max(numCols, numRows);
    const perSlab = Math.floor(usableBytes / rankBytes);
    if (perSlab < 1 || alignArena(rankBytes) > usableBytes) throw tooWide(entry, rankBytes, slabBytes);
    const most = Math.min(MAX_RANK, alignArena(perSlab * rankBytes) > usableBytes ? Math.max(1, perSlab - 1) : perSlab);
    isSplit ||= most < Math.min(rank, MAX_RANK);
    const numParts = Math.ceil(rank / most);
    const parts = Array.from({ length: numParts }, (_, i) => {
      const firstRank = Math.floor((i * rank) / numParts);
      const count = Math.floor(((i + 1) * rank) / numParts) - firstRank;
      return { firstRank, rank: count, a: place(4 * count * numCols), b: place(4 * count * numRows) };
    });
    return { factors: entry, parts };
  });
  return { numSlabs: slabs.length, usedBytes: slabs.reduce((sum, used) => sum + used, 0), isSplit, factors: planned };
}

/** Writes a planned adapter into slabs at these offsets of the arena. */
export function writePlacement(plan: PlacementPlan, arena: Arena, slabs: readonly Offset[]): PlacedFactors[] {
  const at = ({ slab, offset }: Place): Offset => alignArena(slabs[slab]!) + offset;
  return plan.factors.map(({ factors, parts }) => {
    const { numCols, numRows, rank, scale, a, b } = factors;
    const placed = parts.map((part) => {
      const end = part.firstRank + part.rank;
      arena.f32(at(part.a), part.rank * numCols).set(a.subarray(part.firstRank * numCols, end * numCols));
      const columns = arena.f32(at(part.b), numRows * part.rank);
      for (let row = 0; row < numRows; row++) {
        columns.set(b.subarray(row * rank + part.firstRank, row * rank + end), row * part.rank);
      }
      return { rank: part.rank, scale, a: at(part.a), b: at(part.b) };
    });
    return { site: siteOf(factors), numCols, numRows, parts: placed };
  });
}

function tooWide(factors: LowRankFactors, neededBytes: number, slabBytes: number): RuvLLMError {
  const site = siteOf(factors);
  return new RuvLLMError(
    'out_of_memory',
    `one rank of ${site} takes ${neededBytes} bytes, more than a memory slab of ${slabBytes}; increase the KV cache`,
    { data: { tensor: site, neededBytes, slabBytes } },
  );
}
