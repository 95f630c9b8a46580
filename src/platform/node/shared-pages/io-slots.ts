/**
 * Bounds the operations on a folder. One that hangs keeps its slot: a network folder that went away would otherwise take all four
 * threads that Node.js has for files, and block every other file of the process.
 */
export interface IoSlots {
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createIoSlots(numSlots: number): IoSlots {
  let numUsed = 0;
  const queue: (() => void)[] = [];

  /** Rejects with the signal's reason; what was waited for continues. */
  function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason as Error);
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  function leave(): void {
    const next = queue.shift();
    if (next === undefined) numUsed--;
    else next();
  }

  async function enter(signal: AbortSignal): Promise<void> {
    if (numUsed < numSlots) {
      numUsed++;
      return;
    }
    let take = (): void => {};
    const turn = new Promise<void>((resolve) => queue.push((take = resolve)));
    try {
      await orAborted(signal, turn);
    } catch (error) {
      const index = queue.indexOf(take);
      if (index >= 0) queue.splice(index, 1);
      else leave(); // its turn came in the same moment
      throw error;
    }
  }

  return {
    async run(signal, work) {
      await enter(signal);
      const running = work().finally(leave);
      return orAborted(signal, running);
    },
  };
}
