import type { VectorHit } from './types.ts';

const isBetter = (a: VectorHit, b: VectorHit): boolean => a.score > b.score || (a.score === b.score && a.key < b.key);

/** Keeps the k highest scores; of equal ones the lowest keys. */
export interface BestHits {
  readonly k: number;
  readonly isFull: boolean;
  /** Lower scores are not kept. */
  readonly floor: number;
  offer(key: number, score: number): void;
  /** The best first. */
  sorted(): VectorHit[];
}

export function createBestHits(k: number): BestHits {
  /** A heap with the worst on top. */
  const heap: VectorHit[] = [];
  const siftDown = (): void => {
    for (let at = 0; ;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let worst = at;
      if (left < heap.length && isBetter(heap[worst]!, heap[left]!)) worst = left;
      if (right < heap.length && isBetter(heap[worst]!, heap[right]!)) worst = right;
      if (worst === at) return;
      [heap[at], heap[worst]] = [heap[worst]!, heap[at]!];
      at = worst;
    }
  };
  const siftUp = (): void => {
    for (let at = heap.length - 1; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!isBetter(heap[parent]!, heap[at]!)) return;
      [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
      at = parent;
    }
  };
  return {
    k,
    get isFull() {
      return heap.length === k;
    },
    get floor() {
      return heap.length < k ? -Infinity : heap[0]!.score;
    },
    offer(key, score) {
      if (heap.length < k) {
        heap.push({ key, score });
        siftUp();
      } else if (score > heap[0]!.score || (score === heap[0]!.score && key < heap[0]!.key)) {
        heap[0] = { key, score };
        siftDown();
      }
    },
    sorted: () => heap.toSorted((a, b) => b.score - a.score || a.key - b.key),
  };
}
