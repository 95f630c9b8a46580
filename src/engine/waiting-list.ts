import { numBehind, type Sequence } from './sequence.ts';

/** Waiting sequences. A step looks at one per tenant and priority, however many there are. */
export interface WaitingList extends Iterable<Sequence> {
  readonly length: number;
  /** Queues a sequence: a new one by its id, which increases. */
  add(sequence: Sequence): void;
  /** False if it is not waiting. */
  remove(sequence: Sequence): boolean;
  /** By rank. The sequence that was yielded last may be removed, and preempted ones may be added: those come with the next call. */
  inOrder(options: WaitingOrder): Generator<Sequence, void, undefined>;
}

export interface WaitingOrder {
  /** Higher goes first. Never lower for the earlier of two sequences of the same tenant and base priority. */
  readonly priorityOf: (sequence: Sequence) => number;
  readonly servedTokens: (tenant: string) => number;
  /** Whether to look at sequences of this tenant and base priority now. */
  readonly isCandidate: (sequence: Sequence) => boolean;
}

/** The next sequence of a lane. */
interface Cursor {
  readonly sequences: readonly Sequence[];
  at: number;
}

const NEVER_RAN = Number.MAX_SAFE_INTEGER;
const laneOf = ({ request }: Sequence): string => `${request.priority} ${request.tenant}`;

export function createWaitingList(): WaitingList {
  /** By arrival, per tenant and base priority. */
  const lanes = new Map<string, Sequence[]>();
  /** Those that ran before: as few as preemptions. */
  const preempted: Sequence[] = [];
  let length = 0;

  function removeFrom(list: Sequence[], sequence: Sequence): boolean {
    const index = list.indexOf(sequence);
    if (index < 0) return false;
    list.splice(index, 1);
    length--;
    return true;
  }

  return {
    get length() {
      return length;
    },
    add(sequence) {
      length++;
      if (sequence.turn !== null) return void preempted.unshift(sequence);
      const lane = lanes.get(laneOf(sequence));
      if (lane === undefined) return void lanes.set(laneOf(sequence), [sequence]);
      let at = lane.length;
      while (at > 0 && lane[at - 1]!.request.id > sequence.request.id) at--;
      lane.splice(at, 0, sequence);
    },
    remove(sequence) {
      if (sequence.turn !== null) return removeFrom(preempted, sequence);
      const lane = lanes.get(laneOf(sequence));
      if (lane === undefined || !removeFrom(lane, sequence)) return false;
      if (lane.length === 0) lanes.delete(laneOf(sequence));
      return true;
    },
    *[Symbol.iterator]() {
      yield* preempted;
      for (const lane of lanes.values()) yield* lane;
    },
    /**
     * By priority, then sequences that ran before, then the least-served tenant, counting its earlier waiting requests,
     * then arrival.
     */
    *inOrder({ priorityOf, servedTokens, isCandidate }) {
      const starts = new Map<string, number>();
      const startOf = (tenant: string): number => starts.get(tenant) ?? servedTokens(tenant);
      const cursors: Cursor[] = [...lanes.values(), ...preempted.map((one) => [one])].map((sequences) => ({
        sequences,
        at: 0,
      }));
      const compare = (a: Sequence, b: Sequence): number =>
        priorityOf(b) - priorityOf(a) ||
        (a.turn?.order ?? NEVER_RAN) - (b.turn?.order ?? NEVER_RAN) ||
        startOf(a.request.tenant) - startOf(b.request.tenant) ||
        a.request.id - b.request.id;
      for (;;) {
        let best: Cursor | null = null;
        let first: Sequence | null = null;
        for (const cursor of cursors) {
          const head = cursor.sequences[cursor.at];
          if (head === undefined || !isCandidate(head) || (first !== null && compare(first, head) < 0)) continue;
          [best, first] = [cursor, head];
        }
        if (best === null || first === null) return;
        const { tenant } = first.request;
        starts.set(tenant, startOf(tenant) + numBehind(first));
        yield first;
        if (best.sequences[best.at] === first) best.at++;
      }
    },
  };
}
