/** Runs a task after a delay that does not hold the process; returns a function that cancels it. */
export function schedule(task: () => void, delayMs: number): () => void {
  if (delayMs === 0) {
    const turn = setImmediate(task).unref(); // a timer would wait for 1 ms
    return () => clearImmediate(turn);
  }
  const timer = setTimeout(task, delayMs).unref();
  return () => clearTimeout(timer);
}
