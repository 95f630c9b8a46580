import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { isAbort } from '../api/errors.ts';

export interface Page<T> {
  readonly rows: readonly T[];
  /** Cursor of the next page; null: this is the last page. */
  readonly next: string | null;
}

export interface Pages<T> {
  readonly rows: ReadonlySignal<readonly T[]>;
  readonly error: ReadonlySignal<unknown>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Whether the last page has been loaded. */
  readonly isAtEnd: ReadonlySignal<boolean>;
  /** Loads the next page, unless a page is loading or the list is complete. */
  loadMore(): void;
}

/** Loads a long list page by page; restarts when `inputs` change. */
export function usePages<T>(
  load: (after: string | null, signal: AbortSignal) => Promise<Page<T>>,
  inputs: readonly unknown[],
): Pages<T> {
  const rows = useSignal<readonly T[]>([]);
  const error = useSignal<unknown>(null);
  const isLoading = useSignal(true);
  const isAtEnd = useSignal(false);
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const next = useRef<string | null>(null);
  const activeController = useRef<AbortController | null>(null);

  const fetchPage = useCallback(async (controller: AbortController): Promise<void> => {
    isLoading.value = true;
    try {
      const page = await latestLoad.current(next.current, controller.signal);
      if (activeController.current !== controller) return;
      rows.value = [...rows.value, ...page.rows];
      next.current = page.next;
      isAtEnd.value = page.next === null;
      error.value = null;
    } catch (failure) {
      if (activeController.current === controller && !isAbort(failure)) error.value = failure;
    } finally {
      if (activeController.current === controller) isLoading.value = false;
    }
  }, []);

  useEffect(() => {
    const controller = new AbortController();
    activeController.current = controller;
    [rows.value, next.current, isAtEnd.value] = [[], null, false];
    void fetchPage(controller);
    return () => {
      controller.abort();
      if (activeController.current === controller) activeController.current = null;
    };
  }, inputs);

  const loadMore = useCallback((): void => {
    const controller = activeController.current;
    if (!isLoading.value && !isAtEnd.value && controller !== null) void fetchPage(controller);
  }, []);
  return { rows, error, isLoading, isAtEnd, loadMore };
}
