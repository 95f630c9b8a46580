/** Where text ends and a marker may begin. */
export interface MarkerPlace {
  at: number;
  /** Null: none yet; one may still begin at `at`. */
  marker: string | null;
}

export type MarkerSearch = (text: string, isEnded: boolean) => MarkerPlace;

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);

/** Finds the first of `markers`, the longest if several begin at one position. */
export function createMarkerSearch(markers: readonly string[]): MarkerSearch {
  if (markers.length === 0) return (text) => ({ at: text.length, marker: null });
  const byLength = [...new Set(markers)].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(byLength.map(escapeRegExp).join('|'));
  const longest = byLength[0]!.length;
  const mayBegin = (text: string, from: number): boolean =>
    byLength.some((marker) => marker.length > text.length - from && marker.startsWith(text.slice(from)));
  return (text, isEnded) => {
    const match = pattern.exec(text);
    const at = match?.index ?? text.length;
    if (isEnded) return { at, marker: match?.[0] ?? null };
    for (let from = Math.max(0, text.length - longest + 1); from < text.length && from <= at; from++) {
      if (mayBegin(text, from)) return { at: from, marker: null };
    }
    return { at, marker: match?.[0] ?? null };
  };
}
