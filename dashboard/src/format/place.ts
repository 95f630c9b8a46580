/** Lines or pages of a source. */
export interface Place {
  readonly startLine: number | null;
  readonly endLine: number | null;
  readonly startPage: number | null;
  readonly endPage: number | null;
}

/** `lines 12–30` or `page 3`. */
export function placeOf({ startLine, endLine, startPage, endPage }: Place): string {
  const [unit, from, to] = startPage === null ? ['line', startLine, endLine] : ['page', startPage, endPage];
  return from === to || to === null ? `${unit} ${from}` : `${unit}s ${from}–${to}`;
}
