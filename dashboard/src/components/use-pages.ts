import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { isAbort } from '../api/errors.ts';

export interface Page<T> {
  readonly rows: readonly T[];
  /** For the page after this one; null: there is none. */
  readonly next: string | null;
}

export interface Pages<T> {
  readonly rows: ReadonlySignal<readonly T[]>;
  readonly error: ReadonlySignal<unknown>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Whether the last page was loaded. */
  readonly isAtEnd: ReadonlySignal<boolean>;
  /** Loads the next page, unless one is on its way or there is none. */
  loadMore(): void;
}

/** A long list, page by page; it begins anew whenever `inputs` change. */
export function usePages<T>(
  load: (after: string | null, signal: AbortSignal) => Promise<Page<T>>,
  inputs: readonly unknown[],
): Pages<T> {
  const rows = useSignal<readonly T[]>([]);
  const error = useSignal<unknown>(null);
  const isLoading = useSignal(true);
  const isAtEnd = useSignal(false);
  const latest = useRef(load);
  latest.current = load;
  const next = useRef<string | null>(null);
  const running = useRef<AbortController | null>(null);

  const fetchPage = useCallback(async (own: AbortController): Promise<void> => {
    isLoading.value = true;
    try {
      const page = await latest.current(next.current, own.signal);
      if (running.current !== own) return;
      rows.value = [...rows.value, ...page.rows];
      next.current = page.next;
      isAtEnd.value = page.next === null;
      error.value = null;
    } catch (failure) {
      if (running.current === own && !isAbort(failure)) error.value = failure;
    } finally {
      if (running.current === own) isLoading.value = false;
    }
  }, []);

  useEffect(() => {
    const own = new AbortController();
    running.current = own;
    [rows.value, next.current, isAtEnd.value] = [[], null, false];
    void fetchPage(own);
    return () => {
      own.abort();
      if (running.current === own) running.current = null;
    };
  }, inputs);

  const loadMore = useCallback((): void => {
    if (!isLoading.value && !isAtEnd.value && running.current !== null) void fetchPage(running.current);
  }, []);
  return { rows, error, isLoading, isAtEnd, loadMore };
}
