/** Runs writes concurrently; an exclusive one runs after all earlier and before all later ones. */
interface WriteGate {
  run<T>(write: () => Promise<T>): Promise<T>;
  alone<T>(write: () => Promise<T>): Promise<T>;
  /** Resolves when all earlier writes have ended. */
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
