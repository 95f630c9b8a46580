import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { isAbort } from '../api/errors.ts';

export interface Resource<T> {
  /** The latest data; kept while a reload runs and when it fails. */
  readonly data: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<unknown>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Reloads immediately, aborting a load in progress. */
  reload(): void;
}

/**
 * Loads data on mount and whenever `inputs` change. With `everyMs` it polls while the page is visible. The interval starts after each
 * response, so that requests to a slow server never overlap.
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[] = [],
  { everyMs = null }: { everyMs?: number | null } = {},
): Resource<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
  const isLoading = useSignal(true);
  const latestLoad = useRef(load);
  latestLoad.current = load;
  const activeController = useRef<AbortController | null>(null);
  const timer = useRef(0);

  const reload = useCallback((): void => {
    activeController.current?.abort();
    clearTimeout(timer.current);
    const controller = new AbortController();
    activeController.current = controller;
    isLoading.value = true;
    const isCurrent = (): boolean => activeController.current === controller;
    latestLoad
      .current(controller.signal)
      .then(
        (result) => {
          if (!isCurrent()) return;
          data.value = result;
          error.value = null;
        },
        (failure: unknown) => {
          if (isCurrent() && !isAbort(failure)) error.value = failure;
        },
      )
      .finally(() => {
        if (!isCurrent()) return;
        isLoading.value = false;
        if (everyMs !== null && !document.hidden) timer.current = window.setTimeout(reload, everyMs);
      });
  }, [everyMs]);

  useEffect(() => {
    reload();
    return () => {
      activeController.current?.abort();
      activeController.current = null;
      clearTimeout(timer.current);
    };
  }, [reload, ...inputs]);

  useEffect(() => {
    if (everyMs === null) return undefined;
    const onChange = (): void => {
      if (document.hidden) clearTimeout(timer.current);
      else reload();
    };
    document.addEventListener('visibilitychange', onChange);
    return () => document.removeEventListener('visibilitychange', onChange);
  }, [reload, everyMs]);

  return { data, error, isLoading, reload };
}
