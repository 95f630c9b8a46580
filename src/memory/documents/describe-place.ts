import type { ChunkPosition } from './document-records.ts';

type Place = Pick<ChunkPosition, 'startLine' | 'endLine' | 'startPage' | 'endPage'>;

/** `lines 12–30` or `page 3`. */
export function describePlace({ startLine, endLine, startPage, endPage }: Place): string {
  const range = (unit: string, from: number, to: number): string =>
    from === to ? `${unit} ${from}` : `${unit}s ${from}–${to}`;
  return startPage === null
    ? range('line', startLine ?? 1, endLine ?? 1)
    : range('page', startPage, endPage ?? startPage);
}
