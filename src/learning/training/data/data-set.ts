import { type Duplicate, removeNearDuplicates } from './near-duplicates.ts';
import { readDataLines } from './read-lines.ts';
import type { DataLine } from './records.ts';
import { type Part, PARTS, splitLines, type SplitShares } from './split.ts';

export interface DataSetOptions extends SplitShares {
  /** File name for errors and the report, without its folder. */
  readonly name: string;
  /** SHA-256 of the file, in hex. */
  readonly sha256: string;
  /** Jaccard index from which two lines are near-duplicates. */
  readonly nearDuplicates: number;
}

/** The origin of a data set and its sizes, for the report and the metadata of an adapter. */
export interface DataProvenance {
  readonly name: string;
  readonly sha256: string;
  readonly numLines: number;
  readonly numDuplicates: number;
  readonly numNearDuplicates: number;
  readonly nearDuplicates: number;
  readonly shares: SplitShares;
  /** Lines of each part. */
  readonly parts: Readonly<Record<Part, number>>;
}

export interface DataSet {
  readonly parts: Readonly<Record<Part, readonly DataLine[]>>;
  readonly duplicates: readonly Duplicate[];
  readonly provenance: DataProvenance;
}

/** Checks, deduplicates and splits a data set. Duplicates are removed first: one in the held-out part would be a leak. */
export function readDataSet(
  text: string,
  { name, sha256, nearDuplicates, heldOut, validation }: DataSetOptions,
): DataSet {
  const lines = readDataLines(text, name);
  const { kept, duplicates } = removeNearDuplicates(lines, nearDuplicates);
  const shares = { heldOut, validation };
  const parts = splitLines(kept, shares);
  const numDuplicates = duplicates.filter(({ isExact }) => isExact).length;
  const counts = Object.fromEntries(PARTS.map((part) => [part, parts[part].length])) as Record<Part, number>;
  return {
    parts,
    duplicates,
    provenance: {
      name,
      sha256,
      numLines: lines.length,
      numDuplicates,
      numNearDuplicates: duplicates.length - numDuplicates,
      nearDuplicates,
      shares,
      parts: counts,
    },
  };
}
