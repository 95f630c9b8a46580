/** Something large that is made at its first use and ended when it was not used for a while. */
export interface OnDemand<T> {
  /** Whether it is there, or on its way. */
  isOpen(): boolean;
  /** It is not ended while the work runs. A failed opening fails this use; the next one opens it again. */
  use<R>(work: (thing: T) => Promise<R>): Promise<R>;
  /** Ends it now, in use or not; the next use opens another one. */
  end(): Promise<void>;
}

export interface OnDemandOptions<T> {
  open(): Promise<T>;
  end(thing: T): Promise<void>;
  /** Milliseconds without a use after which it is ended. */
  readonly idleMs: number;
  schedule(task: () => void, delayMs: number): () => void;
}

export function createOnDemand<T>(options: OnDemandOptions<T>): OnDemand<T> {
  const { open, idleMs, schedule } = options;
  let current: Promise<T> | null = null;
  let ending: Promise<void> = Promise.resolve();
  let numUses = 0;
  let cancel = (): void => {};

  function end(): Promise<void> {
    cancel();
    const ended = current;
    current = null;
    if (ended !== null) ending = ended.then((thing) => options.end(thing)).catch(() => {});
    return ending;
  }

  return {
    isOpen: () => current !== null,
    async use(work) {
      cancel();
      numUses++;
      // Not before the last one has ended: two of them may not fit.
      const used = (current ??= ending.then(open));
      try {
        const thing = await used.catch((error: unknown) => {
          if (current === used) current = null;
          throw error;
        });
        return await work(thing);
      } finally {
        numUses--;
        if (numUses === 0 && current !== null) cancel = schedule(() => void end(), idleMs);
      }
    },
    end,
  };
}
