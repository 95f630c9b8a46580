/** Tasks with the same key run one at a time, in order; tasks with different keys run concurrently. */
export interface SerialQueues {
  /** Number of keys with tasks. */
  readonly size: number;
  /** A failing task rejects only its own promise; the next one runs. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when all tasks queued so far have ended. */
  settle(): Promise<void>;
}

export function createSerialQueues(): SerialQueues {
  /** The end of each key's last task. */
  const tails = new Map<string, Promise<void>>();
  return {
    get size() {
      return tails.size;
    },
    run(key, task) {
      const result = (tails.get(key) ?? Promise.resolve()).then(task);
      const tail = result
        .then(
          () => {},
          () => {},
        )
        .finally(() => {
          // Otherwise one entry per tenant would remain forever.
          if (tails.get(key) === tail) tails.delete(key);
        });
      tails.set(key, tail);
      return result;
    },
    async settle() {
      await Promise.all(tails.values());
    },
  };
}

export function createSerialQueue(): <T>(task: () => Promise<T>) => Promise<T> {
  const queues = createSerialQueues();
  return (task) => queues.run('', task);
}
