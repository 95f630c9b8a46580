/** Leaves most of a frame to the browser. */
export const SLICE_MS = 6;

const tasks: (() => void)[] = [];
let isScheduled = false;

/** Runs a task in one of the next frames, together with others that fit into it. */
export function runInFrame(task: () => void): void {
  tasks.push(task);
  schedule();
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(runSlice);
}

function runSlice(): void {
  isScheduled = false;
  const endMs = performance.now() + SLICE_MS;
  // Tasks that these add run in the next frame.
  for (let remaining = tasks.length; remaining > 0 && performance.now() < endMs; remaining--) tasks.shift()!();
  if (tasks.length > 0) schedule();
}
