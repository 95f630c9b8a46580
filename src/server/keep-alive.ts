import type { Clock } from '../core/clock.ts';
import { RuvLLMError } from '../core/errors.ts';
import type { ModelHost } from '../runtime/requests/model-host.ts';

/** Unloads models that were idle for as long as the last request asked for. */
export interface KeepAlive {
  /** Unloads the model after `idleMs` without a call; 0: now, null: never. */
  set(id: string, idleMs: number | null): Promise<void>;
  /** Milliseconds since 1970; null: it stays loaded. */
  expiresMs(id: string): number | null;
  close(): void;
}

/** A model in use is looked at again after this time. */
const RETRY_MS = 1000;

export function createKeepAlive(models: ModelHost, clock: Clock): KeepAlive {
  const timers = new Map<string, { readonly cancel: () => void; readonly expiresMs: number }>();

  function arm(id: string, idleMs: number): void {
    const cancel = clock.setTimer(idleMs, () => {
      timers.delete(id);
      void unload(id);
    });
    timers.set(id, { cancel, expiresMs: clock.wallClock() + idleMs });
  }

  async function unload(id: string): Promise<void> {
    try {
      if (models.find(id)?.state === 'loaded') await models.unload(id, { force: false, drainMs: 0 });
    } catch (error) {
      // In use; other failures of an unload have no one to tell.
      if (error instanceof RuvLLMError && error.code === 'conflict' && !timers.has(id)) arm(id, RETRY_MS);
    }
  }

  return {
    async set(id, idleMs) {
      timers.get(id)?.cancel();
      timers.delete(id);
      if (idleMs === 0) await unload(id);
      else if (idleMs !== null) arm(id, idleMs);
    },
    expiresMs: (id) => timers.get(id)?.expiresMs ?? null,
    close() {
      for (const { cancel } of timers.values()) cancel();
      timers.clear();
    },
  };
}
