import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useCallback, useEffect, useRef } from 'preact/hooks';
import { isAbort } from '../api/errors.ts';

export interface Resource<T> {
  /** The last that was loaded; it stays while it is loaded again, and when that fails. */
  readonly data: ReadonlySignal<T | null>;
  readonly error: ReadonlySignal<unknown>;
  readonly isLoading: ReadonlySignal<boolean>;
  /** Loads it now; what is on its way is given up. */
  reload(): void;
}

/**
 * Data of the server, loaded when it is first shown and whenever `inputs` change; with `everyMs` again and again while the page can be
 * seen, each time that long after the last answer: a slow server is not asked twice at once.
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[] = [],
  { everyMs = null }: { everyMs?: number | null } = {},
): Resource<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
  const isLoading = useSignal(true);
  const latest = useRef(load);
  latest.current = load;
  const running = useRef<AbortController | null>(null);
  const timer = useRef(0);

  const reload = useCallback((): void => {
    running.current?.abort();
    clearTimeout(timer.current);
    const own = new AbortController();
    running.current = own;
    isLoading.value = true;
    const isCurrent = (): boolean => running.current === own;
    latest
      .current(own.signal)
      .then(
        (loaded) => {
          if (!isCurrent()) return;
          data.value = loaded;
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
      running.current?.abort();
      running.current = null;
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
