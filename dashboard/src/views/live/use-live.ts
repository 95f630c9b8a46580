import { type ReadonlySignal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, isAbort } from '../../api/errors.ts';
import { type LiveSnapshot, readLiveHistory, watchLive } from '../../api/live.ts';
import { client } from '../../app/session.ts';
import { formatCount } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';
import { addSnapshot, type History, NO_HISTORY, pastOf } from './history.ts';

/** Delay before reconnecting to a lost server. */
const RETRY_MS = 2000;
/** Snapshots arrive every second; after this long without one the connection is considered dead. */
const SILENCE_MS = 10_000;

export interface Live {
  readonly snapshot: ReadonlySignal<LiveSnapshot | null>;
  readonly history: ReadonlySignal<History>;
  readonly error: ReadonlySignal<unknown>;
}

/** Follows the server's live stream while the page is visible, and reconnects after a failure. */
export function useLive(): Live {
  const snapshot = useSignal<LiveSnapshot | null>(null);
  const history = useSignal<History>(NO_HISTORY);
  const error = useSignal<unknown>(null);

  useEffect(() => {
    let activeController: AbortController | null = null;
    let timer = 0;
    let watchdog = 0;
    async function follow(controller: AbortController): Promise<void> {
      const resetWatchdog = (): void => {
        clearTimeout(watchdog);
        watchdog = window.setTimeout(() => {
          controller.abort();
          error.value = new ApiError(messages.live.silence(formatCount(SILENCE_MS / 1000)), {
            status: 0,
            code: 'unreachable',
          });
          timer = window.setTimeout(start, RETRY_MS);
        }, SILENCE_MS);
      };
      resetWatchdog();
      try {
        // Also after a pause: the server sampled meanwhile.
        history.value = pastOf(await readLiveHistory(client, controller.signal));
        for await (const latest of watchLive(client, controller.signal)) {
          resetWatchdog();
          snapshot.value = latest;
          history.value = addSnapshot(history.value, latest);
          error.value = null;
        }
      } catch (failure) {
        if (controller.signal.aborted || isAbort(failure)) return;
        clearTimeout(watchdog);
        error.value = failure;
        timer = window.setTimeout(start, RETRY_MS);
      }
    }
    function start(): void {
      stop();
      if (document.hidden) return;
      activeController = new AbortController();
      void follow(activeController);
    }
    function stop(): void {
      clearTimeout(timer);
      clearTimeout(watchdog);
      activeController?.abort();
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
