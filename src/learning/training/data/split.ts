import { promptText } from './near-duplicates.ts';
import type { DataLine } from './records.ts';

export const PARTS = ['train', 'validation', 'heldOut'] as const;
export type Part = (typeof PARTS)[number];

export interface SplitShares {
  /** Share of prompts that training never sees, for the report. */
  readonly heldOut: number;
  /** Share of prompts that decide when training stops. */
  readonly validation: number;
}

/** FNV-1a with a finalizer, from 0 to 1: the same on every machine. */
function placeOf(prompt: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < prompt.length; i++) hash = Math.imul(hash ^ prompt.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

/**
 * The part of a prompt depends on its text alone: it stays when lines are added or reordered, all lines of one prompt are together, and
 * case, punctuation and spaces do not move a prompt from training to the held-out part.
 */
export function partOf(line: DataLine, { heldOut, validation }: SplitShares): Part {
  const words = promptText(line.prompt)
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [promptText(line.prompt)];
  const place = placeOf(words.join(' '));
  if (place < heldOut) return 'heldOut';
  return place < heldOut + validation ? 'validation' : 'train';
}

export function splitLines<T extends DataLine>(
  lines: readonly T[],
  shares: SplitShares,
): Readonly<Record<Part, readonly T[]>> {
  const parts: Record<Part, T[]> = { train: [], validation: [], heldOut: [] };
  for (const line of lines) parts[partOf(line, shares)].push(line);
  return parts;
}
