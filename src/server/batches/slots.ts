/** Places for a bounded number of tasks; those that wait get one in the order of their requests. */
export interface Slots {
  /** Resolves with a function that frees the place; null: the signal was aborted first. */
  enter(signal: AbortSignal): Promise<(() => void) | null>;
}

export function createSlots(size: number): Slots {
  const waiting: (() => void)[] = [];
  let numFree = size;
  function leave(): void {
    const next = waiting.shift();
    if (next === undefined) numFree++;
    else next();
  }
  const once = (): (() => void) => {
    let isInside = true;
    return () => {
      if (isInside) leave();
      isInside = false;
    };
  };
  return {
    enter: (signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve(null);
        if (numFree > 0) {
          numFree--;
          return resolve(once());
        }
        const abort = (): void => {
          waiting.splice(waiting.indexOf(turn), 1);
          resolve(null);
        };
        const turn = (): void => {
          signal.removeEventListener('abort', abort);
          resolve(once());
        };
        waiting.push(turn);
        signal.addEventListener('abort', abort, { once: true });
      }),
  };
}
