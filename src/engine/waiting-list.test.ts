import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSchedulerSetUp } from '../../test/support/scheduler-setup.ts';
import { numBehind, type Sequence } from './sequence.ts';
import { createWaitingList } from './waiting-list.ts';

interface Waiter {
  readonly tenant: string;
  readonly priority: number;
  readonly numTokens: number;
  readonly turn: number | null;
}

const sequenceOf = ({ tenant, priority, numTokens, turn }: Waiter, id: number, order: number | null): Sequence =>
  ({
    request: { id, tenant, priority },
    tokenIds: Array<number>(numTokens).fill(0),
    numComputed: 0,
    addedAtMs: id * 10,
    turn: turn === null ? null : { priority: turn, order: order! },
  }) as unknown as Sequence;

const AGING_MS = 40;
const priorityOf = ({ request, turn, addedAtMs }: Sequence): number =>
  Math.max(turn?.priority ?? -Infinity, request.priority + Math.floor((500 - addedAtMs) / AGING_MS));

/** The whole list sorted at once. */
function sortAll(sequences: readonly Sequence[], servedTokens: (tenant: string) => number): Sequence[] {
  const turnOf = ({ turn }: Sequence): number => turn?.order ?? Number.MAX_SAFE_INTEGER;
  const byRank = (a: Sequence, b: Sequence): number => priorityOf(b) - priorityOf(a) || turnOf(a) - turnOf(b);
  const sorted = sequences.toSorted((a, b) => byRank(a, b) || a.request.id - b.request.id);
  const starts = new Map<Sequence, number>();
  const served = new Map<string, number>();
  for (const sequence of sorted) {
    const { tenant } = sequence.request;
    const start = served.get(tenant) ?? servedTokens(tenant);
    starts.set(sequence, start);
    served.set(tenant, start + numBehind(sequence));
  }
  return sorted.sort((a, b) => byRank(a, b) || starts.get(a)! - starts.get(b)! || a.request.id - b.request.id);
}

const waiters = fc.array(
  fc.record({
    tenant: fc.constantFrom('a', 'b', 'c'),
    priority: fc.integer({ min: -1, max: 2 }),
    numTokens: fc.integer({ min: 1, max: 9 }),
    turn: fc.option(fc.integer({ min: 0, max: 5 }), { freq: 5 }),
  }),
  { maxLength: 40 },
);

test('[E17] the order is that of the whole list, sorted', () => {
  fc.assert(
    fc.property(waiters, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), (all, isTaken) => {
      const servedTokens = (tenant: string): number => tenant.charCodeAt(0) % 3;
      const sequences = all.map((one, id) => sequenceOf(one, id, all.length - id));
      const list = createWaitingList();
      for (const sequence of sequences) list.add(sequence);
      const ordered: Sequence[] = [];
      for (const sequence of list.inOrder({ priorityOf, servedTokens, isCandidate: () => true })) {
        if (isTaken[ordered.length]) expect(list.remove(sequence)).toBe(true);
        ordered.push(sequence);
      }
      expect(ordered).toEqual(sortAll(sequences, servedTokens));
      const left = ordered.filter((_, i) => !isTaken[i]);
      expect(list.length).toBe(left.length);
      expect([...list].sort((a, b) => a.request.id - b.request.id)).toEqual(
        left.toSorted((a, b) => a.request.id - b.request.id),
      );
    }),
    { numRuns: 500, seed: 3 },
  );
});

test('[E38] a step costs the same with 10 and with 10,000 waiting requests', () => {
  const countReads = (numWaiting: number): number => {
    const { state, arrive, step } = createSchedulerSetUp({ maxRunning: 4 });
    for (let i = 0; i < numWaiting; i++) arrive(3, { tenant: i % 2 === 0 ? 'a' : 'b' });
    for (let i = 0; i < 5; i++) step(20);
    let numReads = 0;
    for (const sequence of state.waiting) {
      const { addedAtMs } = sequence;
      Object.defineProperty(sequence, 'addedAtMs', { get: () => (numReads++, addedAtMs) });
      const { request } = sequence;
      Object.defineProperty(sequence, 'request', { get: () => (numReads++, request) });
    }
    step(20);
    return numReads;
  };
  const few = countReads(10);
  expect(few).toBeGreaterThan(0);
  expect(countReads(10_000)).toBe(few);
});

test('a sequence that joins late, because its pages were fetched, takes its place by arrival', () => {
  const waiting = createWaitingList();
  const [first, second, third] = [1, 2, 3].map((id) =>
    sequenceOf({ tenant: 'a', priority: 0, numTokens: 1, turn: null }, id, null),
  ) as [Sequence, Sequence, Sequence];
  for (const sequence of [second, third, first]) waiting.add(sequence);
  const order = waiting.inOrder({ priorityOf, servedTokens: () => 0, isCandidate: () => true });
  expect([...order].map(({ request }) => request.id)).toEqual([1, 2, 3]);
});
