import { cutToWidth, displayWidth, padToWidth, wrapToWidth } from './text-width.ts';

const GAP = '  ';
const MIN_COLUMN = 6;
/** Without cutting, one cell of a megabyte must not pad every row to a megabyte. */
const MAX_PADDING = 120;

/** Shrinks the widest columns until all fit. */
function shrink(widths: readonly number[], columns: number): number[] {
  const fitted = widths.map((width) => Math.min(width, columns));
  let excess = fitted.reduce((sum, width) => sum + width, 0) + GAP.length * (fitted.length - 1) - columns;
  while (excess > 0) {
    const widest = Math.max(...fitted);
    if (widest <= MIN_COLUMN) break;
    fitted[fitted.lastIndexOf(widest)]!--;
    excess--;
  }
  return fitted;
}

/** Lays out rows in lines of at most `columns` columns (null: unlimited). Cells must be escaped single lines. */
export function layTable(rows: readonly (readonly string[])[], columns: number | null): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) {
      const width = columns === null ? displayWidth(cell) : displayWidth(cell.slice(0, columns * 16));
      if (columns !== null || width <= MAX_PADDING) widths[i] = Math.max(widths[i] ?? 0, width);
      else widths[i] ??= 0;
    }
  }
  const fitted = columns === null ? widths : shrink(widths, columns);
  return rows.map((row) => {
    const cells = row.map((cell, i) => {
      const cut = columns === null ? cell : cutToWidth(cell, fitted[i]!);
      return i === row.length - 1 ? cut : padToWidth(cut, fitted[i]!);
    });
    const line = cells.join(GAP);
    return columns === null ? line : cutToWidth(line, columns);
  });
}

/** Lays out names and values; long values are wrapped unless `columns` is null. */
export function layDetails(rows: readonly (readonly [string, string])[], columns: number | null): string[] {
  const indent = Math.max(...rows.map(([name]) => displayWidth(name))) + GAP.length;
  return rows.flatMap(([name, value]) => {
    const lines = columns === null ? [value] : wrapToWidth(value, Math.max(20, columns - indent));
    return lines.map((line, i) => (padToWidth(i === 0 ? name : '', indent) + line).trimEnd());
  });
}
