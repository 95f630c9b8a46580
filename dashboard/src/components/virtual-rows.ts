/** Rows rendered above and below the viewport, so that fast scrolling shows no gap. */
const OVERSCAN = 8;

/** Returns the range of rows to render: `first` inclusive, `last` exclusive. */
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

/** Returns the row that a key moves to; null: the key does not navigate. */
export function moveRow(
  key: string,
  activeRow: number,
  { numRows, pageRows }: { numRows: number; pageRows: number },
): number | null {
  const target = {
    ArrowDown: activeRow + 1,
    ArrowUp: activeRow - 1,
    PageDown: activeRow + pageRows,
    PageUp: activeRow - pageRows,
    Home: 0,
    End: numRows - 1,
  }[key];
  return target === undefined ? null : Math.max(0, Math.min(numRows - 1, target));
}
