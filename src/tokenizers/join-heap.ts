/** A min-heap of candidate joins in typed arrays, ordered by priority, then by the left symbol. */
export interface JoinHeap {
  push(priority: number, left: number, rightEnd: number, rule: number): void;
  /** Removes the best entry and stores it in the three fields below; false if the heap is empty. */
  pop(): boolean;
  left: number;
  /** End of the right symbol when the entry was pushed; a different end means a stale entry. */
  rightEnd: number;
  rule: number;
  clear(): void;
}

const INITIAL_CAPACITY = 256;
// A larger heap is freed when cleared: one huge text must not hold its working memory forever.
const MAX_KEPT_CAPACITY = 1 << 16;

export function createJoinHeap(): JoinHeap {
  let priorities = new Float64Array(INITIAL_CAPACITY);
  let lefts = new Int32Array(INITIAL_CAPACITY);
  let rightEnds = new Int32Array(INITIAL_CAPACITY);
  let rules = new Int32Array(INITIAL_CAPACITY);
  let size = 0;

  const allocate = (capacity: number): void => {
    const old = { priorities, lefts, rightEnds, rules };
    priorities = new Float64Array(capacity);
    lefts = new Int32Array(capacity);
    rightEnds = new Int32Array(capacity);
    rules = new Int32Array(capacity);
    priorities.set(old.priorities.subarray(0, size));
    lefts.set(old.lefts.subarray(0, size));
    rightEnds.set(old.rightEnds.subarray(0, size));
    rules.set(old.rules.subarray(0, size));
  };
  const move = (from: number, to: number): void => {
    priorities[to] = priorities[from]!;
    lefts[to] = lefts[from]!;
    rightEnds[to] = rightEnds[from]!;
    rules[to] = rules[from]!;
  };
  const isBefore = (a: number, b: number): boolean =>
    priorities[a]! < priorities[b]! || (priorities[a] === priorities[b] && lefts[a]! < lefts[b]!);

  const heap: JoinHeap = {
    left: -1,
    rightEnd: -1,
    rule: -1,
    push(priority, left, rightEnd, rule) {
      if (size === priorities.length) allocate(size * 2);
      let at = size++;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        const above = priorities[parent]!;
        if (above < priority || (above === priority && lefts[parent]! <= left)) break;
        move(parent, at);
        at = parent;
      }
      priorities[at] = priority;
      lefts[at] = left;
      rightEnds[at] = rightEnd;
      rules[at] = rule;
    },
    pop() {
      if (size === 0) return false;
      heap.left = lefts[0]!;
      heap.rightEnd = rightEnds[0]!;
      heap.rule = rules[0]!;
      const last = --size;
      let at = 0;
      for (;;) {
        let child = 2 * at + 1;
        if (child >= size) break;
        if (child + 1 < size && isBefore(child + 1, child)) child++;
        if (!isBefore(child, last)) break;
        move(child, at);
        at = child;
      }
      move(last, at);
      return true;
    },
    clear() {
      size = 0;
      if (priorities.length > MAX_KEPT_CAPACITY) allocate(INITIAL_CAPACITY);
    },
  };
  return heap;
}
