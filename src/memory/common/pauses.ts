/** Milliseconds of work between two pauses. */
const PIECE_MS = 4;

/**
 * For work that would hold its thread: called between small parts of it, the returned function waits, once some milliseconds are
 * over, until others of the thread had their turn. Of several that wait one goes on at a time, so that their pieces do not add up.
 */
export function createPauses(): () => Promise<void> {
  let last = Promise.resolve();
  let endMs = -Infinity;
  return async () => {
    if (performance.now() < endMs) return;
    // A timer of the process, whatever the clock of the memory is: the thread is held in real time.
    last = last.then(() => new Promise((resolve) => setTimeout(resolve, 0)));
    await last;
    endMs = performance.now() + PIECE_MS;
  };
}
