// White space as people and serializers write it: a space after a colon or comma, or one line per item with the same indent at
// every level. Nothing else, because a model could write white space for ever.

/** Indent of a container's items per level: spaces, `TAB`, or 0 for a container on one line. */
export const ON_ONE_LINE = 0;
export const TAB = 9;
/** The first container decides. */
export const UNDECIDED = -1;
const MAX_UNIT = 4;

/** White space that may or must come next: a number above 0 is that of missing indent characters. */
export const GAP = { none: 0, space: -1, spaceOrLine: -2, firstIndent: -3 } as const;

export const SPACE_BYTE = 0x20;
const TAB_BYTE = 0x09;
const LINE_BYTE = 0x0a;

export function isSpace(byte: number): boolean {
  return byte === SPACE_BYTE || byte === LINE_BYTE || byte === TAB_BYTE;
}

export interface Place {
  readonly gap: number;
  /** Of the container around the place. */
  readonly unit: number;
}

const indentOf = (unit: number, depth: number): number => depth * (unit === TAB ? 1 : unit);

/** The place after a line break before indent of `depth` levels; null if none may come. */
export function breakLine(unit: number, depth: number, maxWhitespace: number): Place | null {
  if (unit === ON_ONE_LINE) return null;
  if (unit === UNDECIDED) return maxWhitespace > 1 ? { gap: GAP.firstIndent, unit } : null;
  const gap = indentOf(unit, depth);
  return gap < maxWhitespace ? { gap, unit } : null;
}

/** The place after a byte of white space; null if it may not come. */
export function stepGap({ gap, unit }: Place, byte: number, depth: number, maxWhitespace: number): Place | null {
  if (gap > 0) return byte === (unit === TAB ? TAB_BYTE : SPACE_BYTE) ? { gap: gap - 1, unit } : null;
  if (gap <= GAP.firstIndent) {
    const count = GAP.firstIndent - gap;
    if (byte === TAB_BYTE) return count === 0 ? { gap: GAP.none, unit: TAB } : null;
    return byte === SPACE_BYTE && count < MAX_UNIT && count + 2 <= maxWhitespace ? { gap: gap - 1, unit } : null;
  }
  if (byte === SPACE_BYTE) return gap === GAP.none ? null : { gap: GAP.none, unit };
  return byte === LINE_BYTE && gap === GAP.spaceOrLine ? breakLine(unit, depth, maxWhitespace) : null;
}

/** The indent at the first item; null if white space is missing. */
export function endGap({ gap, unit }: Place): number | null {
  if (gap > 0 || gap === GAP.firstIndent) return null;
  return gap < GAP.firstIndent ? GAP.firstIndent - gap : unit;
}

/** The white space that is missing. */
export function missingSpace({ gap, unit }: Place): string {
  if (gap === GAP.firstIndent) return ' ';
  return gap > 0 ? (unit === TAB ? '\t' : ' ').repeat(gap) : '';
}
