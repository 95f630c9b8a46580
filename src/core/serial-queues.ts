/** Tasks of one key run one after the other, in the order they came; those of different keys run beside each other. */
export interface SerialQueues {
  /** How many keys have tasks. */
  readonly size: number;
  /** A task that fails rejects its own promise; the next runs all the same. */
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when every task that was given before has ended. */
  settle(): Promise<void>;
}

export function createSerialQueues(): SerialQueues {
  /** The end of the last task of each key. */
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
          // A key per tenant would stay for good.
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

/** One queue. */
export function createSerialQueue(): <T>(task: () => Promise<T>) => Promise<T> {
  const queues = createSerialQueues();
  return (task) => queues.run('', task);
}
