import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, isAbort } from '../../api/errors.ts';
import { type LiveSnapshot, watchLive } from '../../api/live.ts';
import { client } from '../../app/session.ts';
import { addPoint, type History, NO_HISTORY } from './history.ts';

/** A server that is gone is asked again after this long. */
const RETRY_MS = 2000;
/** A snapshot comes every second: after this long without one the connection is dead, though nobody has said so. */
const SILENCE_MS = 10_000;

export interface Live {
  readonly snapshot: ReadonlySignal<LiveSnapshot | null>;
  readonly history: ReadonlySignal<History>;
  readonly error: ReadonlySignal<unknown>;
}

/** The server's own stream while the page can be seen; it is taken up again after a failure. */
export function useLive(): Live {
  const snapshot = useSignal<LiveSnapshot | null>(null);
  const history = useSignal<History>(NO_HISTORY);
  const error = useSignal<unknown>(null);

  useEffect(() => {
    let running: AbortController | null = null;
    let timer = 0;
    let watchdog = 0;
    async function follow(own: AbortController): Promise<void> {
      const listen = (): void => {
        clearTimeout(watchdog);
        watchdog = window.setTimeout(() => {
          own.abort();
          error.value = new ApiError(`the server has said nothing for ${SILENCE_MS / 1000} s`, {
            status: 0,
            code: 'unreachable',
          });
          timer = window.setTimeout(start, RETRY_MS);
        }, SILENCE_MS);
      };
      listen();
      try {
        for await (const one of watchLive(client, own.signal)) {
          listen();
          snapshot.value = one;
          history.value = addPoint(history.value, one);
          error.value = null;
        }
      } catch (failure) {
        if (own.signal.aborted || isAbort(failure)) return;
        clearTimeout(watchdog);
        error.value = failure;
        timer = window.setTimeout(start, RETRY_MS);
      }
    }
    function start(): void {
      stop();
      if (document.hidden) return;
      running = new AbortController();
      void follow(running);
    }
    function stop(): void {
      clearTimeout(timer);
      clearTimeout(watchdog);
      running?.abort();
    }
    document.addEventListener('visibilitychange', start);
    start();
    return () => {
      document.removeEventListener('visibilitychange', start);
      stop();
    };
  }, []);
  return { snapshot, history, error };
}
