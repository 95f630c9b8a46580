/** Lets writes run side by side, and one that must be alone after all that came before it and before all that come later. */
export interface WriteGate {
  run<T>(write: () => Promise<T>): Promise<T>;
  alone<T>(write: () => Promise<T>): Promise<T>;
  /** Resolves when all that came before are over. */
  settle(): Promise<void>;
}

export function createWriteGate(): WriteGate {
  const active = new Set<Promise<unknown>>();
  let barrier: Promise<unknown> = Promise.resolve();

  function track<T>(promise: Promise<T>): Promise<T> {
    const forget = (): void => void active.delete(over);
    const over: Promise<void> = promise.then(forget, forget);
    active.add(over);
    return promise;
  }

  return {
    run: (write) => track(barrier.then(write)),
    alone(write) {
      const before = [...active];
      const promise = Promise.all(before).then(write);
      barrier = promise.catch(() => {});
      return track(promise);
    },
    async settle() {
      while (active.size > 0) await Promise.all(active);
    },
  };
}
