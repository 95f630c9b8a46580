/** Rows kept above and below what can be seen, so that a quick scroll shows no gap. */
const OVERSCAN = 8;

/** Which rows of a long list are on the page: from the first to before the last. */
export function visibleRows({
  scrollTop,
  height,
  rowHeight,
  numRows,
}: {
  scrollTop: number;
  height: number;
  rowHeight: number;
  numRows: number;
}): { first: number; last: number } {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - OVERSCAN);
  const last = Math.min(numRows, Math.ceil((scrollTop + height) / rowHeight) + OVERSCAN);
  return { first: Math.min(first, last), last };
}

/** Where the active row goes with a key; null: the key is not ours. */
export function moveRow(
  key: string,
  at: number,
  { numRows, pageRows }: { numRows: number; pageRows: number },
): number | null {
  const target = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + pageRows,
    PageUp: at - pageRows,
    Home: 0,
    End: numRows - 1,
  }[key];
  return target === undefined ? null : Math.max(0, Math.min(numRows - 1, target));
}
