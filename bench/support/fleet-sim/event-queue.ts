/** Events by time; events of one time in the order in which they were added. */
export interface EventQueue {
  add(atMs: number, run: () => void): void;
  /** Runs all events up to a time, also those that they add. */
  runUntil(atMs: number): void;
  runAll(): void;
}

interface Timed {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const isBefore = (a: Timed, b: Timed): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);

/** A binary heap. `setNow` is called with the time of each event before it runs. */
export function createEventQueue(setNow: (nowMs: number) => void): EventQueue {
  const heap: Timed[] = [];
  let order = 0;

  function pop(): Timed {
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }

  function runUntil(atMs: number): void {
    while (heap.length > 0 && heap[0]!.atMs <= atMs) {
      const event = pop();
      setNow(event.atMs);
      event.run();
    }
  }

  return {
    add(atMs, run) {
      const event = { atMs, order: order++, run };
      let at = heap.length;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (!isBefore(event, heap[parent]!)) break;
        heap[at] = heap[parent]!;
        at = parent;
      }
      heap[at] = event;
    },
    runUntil,
    runAll: () => runUntil(Infinity),
  };
}
