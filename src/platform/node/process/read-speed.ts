const BUFFER_BYTES = 32 * 2 ** 20;
const MEASURE_MS = 50;

let bytesPerSecond: number | null = null;

/** Bytes per second that one thread reads from memory, measured once by comparing two equal buffers. */
export function measureReadSpeed(): number {
  if (bytesPerSecond !== null) return bytesPerSecond;
  const [a, b] = [Buffer.alloc(BUFFER_BYTES, 1), Buffer.alloc(BUFFER_BYTES, 1)];
  a.equals(b); // the first pass waits for the system to map the pages
  const startMs = performance.now();
  let bestMs = Infinity;
  do {
    const passMs = performance.now();
    a.equals(b);
    bestMs = Math.min(bestMs, performance.now() - passMs); // other programs only slow a pass down
  } while (performance.now() - startMs < MEASURE_MS);
  bytesPerSecond = (2 * BUFFER_BYTES * 1000) / bestMs;
  return bytesPerSecond;
}
