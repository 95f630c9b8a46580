/**
 * Browsers do not tell when a worker ends. A worker therefore holds a lock for as long as it lives, which the browser releases
 * with it, and the page waits for that lock.
 */
export interface WorkerLife {
  /** Name of the lock; the worker gets it with its first message. */
  readonly lock: string;
  /** Calls back when the worker has ended; not after `release`. */
  watch(onEnd: () => void): void;
  release(): void;
}

export function createWorkerLife(): WorkerLife {
  const lock = `ruvllm worker ${crypto.randomUUID()}`;
  const controller = new AbortController();
  return {
    lock,
    watch(onEnd) {
      navigator.locks.request(lock, { signal: controller.signal }, () => onEnd()).catch(() => {}); // released
    },
    release: () => controller.abort(),
  };
}

/** In the worker: resolves once the lock is held, for the rest of its life. */
export function holdLife(lock: string): Promise<void> {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(lock, () => {
        resolve();
        return new Promise(() => {});
      })
      .catch(reject);
  });
}
