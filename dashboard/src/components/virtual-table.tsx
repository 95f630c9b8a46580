import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';
import { moveRow, visibleRows } from './virtual-rows.ts';

export interface Column<T> {
  readonly title: string;
  /** A `grid-template-columns` value: `120px`, `minmax(160px, 1fr)`. */
  readonly width: string;
  readonly isNumber?: boolean;
  /** Whether only screen readers read the title, because the cells explain themselves. */
  readonly isTitleUnseen?: boolean;
  readonly cell: (row: T) => ComponentChildren;
}

export interface VirtualTableProps<T> {
  /** Accessible name of the table. */
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  readonly onOpen?: (row: T) => void;
  /** Called when the last row becomes visible, to load more. */
  readonly onEnd?: () => void;
  /** Maximum height of the table in pixels; default: 480. */
  readonly height?: number;
  /** Width in pixels below which the table scrolls horizontally; default: 0. */
  readonly minWidth?: number;
  readonly rowHeight?: number;
}

/** A table of any length that renders only the visible rows. Arrow keys move, Enter opens. */
export function VirtualTable<T>(props: VirtualTableProps<T>) {
  const { label, rows, columns, keyOf, onOpen, onEnd, height = 480, minWidth = 0, rowHeight = 40 } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const active = useSignal(0);
  const viewHeight = useSignal(height);
  const { first, last } = visibleRows({
    scrollTop: scrollTop.value,
    height: viewHeight.value,
    rowHeight,
    numRows: rows.length,
  });

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => (viewHeight.value = scroller.current?.clientHeight ?? height));
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, []);
  const isAtEnd = rows.length > 0 && last === rows.length;
  useEffect(() => {
    if (isAtEnd) onEnd?.();
  }, [isAtEnd, rows.length]);

  function onKeyDown(event: KeyboardEvent): void {
    const pageRows = Math.max(1, Math.floor(viewHeight.value / rowHeight) - 2);
    const target = moveRow(event.key, active.value, { numRows: rows.length, pageRows });
    const row = rows[active.value];
    if (event.key === 'Enter' && row !== undefined) onOpen?.(row);
    if (target === null || rows.length === 0) return;
    event.preventDefault();
    active.value = target;
    const element = scroller.current!;
    const headHeight = element.querySelector<HTMLElement>('.grid-head')!.offsetHeight;
    const top = target * rowHeight;
    const bottomGap = top + rowHeight + headHeight - (element.scrollTop + element.clientHeight);
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottomGap > 0) element.scrollTop += bottomGap;
  }

  const style = {
    '--columns': columns.map(({ width }) => width).join(' '),
    '--min-width': `${minWidth}px`,
    maxHeight: `${height}px`,
  };
  const visibleSlice = rows.slice(first, last);
  const activeId = active.value >= first && active.value < last ? `${id}-${active.value}` : undefined;
  return (
    <div class="grid-table" style={style} data-opens={onOpen === undefined ? undefined : ''}>
      <div
        class="grid-scroll"
        ref={scroller}
        role="grid"
        tabIndex={0}
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={activeId}
        onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
        onKeyDown={onKeyDown}
      >
        <div role="rowgroup">
          <div class="grid-head" role="row" aria-rowindex={1}>
            {columns.map(({ title, isNumber, isTitleUnseen }) => (
              <div key={title} role="columnheader" class={isNumber ? 'end' : undefined}>
                {isTitleUnseen ? <span class="unseen">{title}</span> : title}
              </div>
            ))}
          </div>
        </div>
        <div class="grid-body" role="rowgroup" style={{ height: `${rows.length * rowHeight}px` }}>
          {visibleSlice.map((row, offset) => {
            const index = first + offset;
            return (
              <div
                key={keyOf(row)}
                id={`${id}-${index}`}
                class="grid-row"
                role="row"
                aria-rowindex={index + 2}
                data-active={index === active.value ? '' : undefined}
                style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}
                onClick={() => {
                  active.value = index;
                  onOpen?.(row);
                }}
              >
                {columns.map(({ title, cell, isNumber }) => (
                  <div key={title} role="gridcell" class={isNumber ? 'end' : undefined}>
                    {cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
