import { expect, test } from 'vitest';
import { createSequenceState, usableMatch } from './sequence-state.ts';
import { createStateShelf, type StateMemory } from './state-shelf.ts';
import type { KvPage } from './types.ts';

const PAGE_TOKENS = 4;

function createMemory(numStates: number): StateMemory {
  const region = new Uint8Array(numStates * 2);
  return { numStates, stateBytes: 2, bytesOf: (index) => region.subarray(index * 2, index * 2 + 2) };
}

const createPages = (count: number): (KvPage & { numRefs: number })[] =>
  Array.from({ length: count }, (_, index) => ({ tier: 'float', index, numRefs: 1 }));

function setUp(numStates: number) {
  const states = createStateShelf(createMemory(numStates));
  return { states, state: createSequenceState(states, PAGE_TOKENS), pages: createPages(20) };
}

test('hands out every state once, and the one that was freed last first', () => {
  const { states } = setUp(3);
  expect([states.take(), states.take(), states.take()]).toEqual([0, 1, 2]);
  expect(states.tryTake()).toBeNull();
  expect(() => states.take()).toThrow('all 3 states are in use');
  states.free(1);
  states.free(0);
  expect([states.take(), states.tryTake(), states.tryTake()]).toEqual([0, 1, null]);
});

test('the least recently used checkpoint gives its state away, and only that one', () => {
  const { states, pages } = setUp(3);
  for (const page of pages.slice(0, 3)) states.attach(page, { index: states.take(), numTokens: 4 });
  states.touch(pages[0]!);
  states.touch(pages[9]!); // has none
  expect(states.numCheckpoints).toBe(3);
  expect(states.take()).toBe(1);
  expect([states.find(pages[0]!), states.find(pages[1]!), states.find(pages[2]!)]).toEqual([
    { index: 0, numTokens: 4 },
    null,
    { index: 2, numTokens: 4 },
  ]);
  expect([states.tryTake(), states.tryTake(), states.tryTake()]).toEqual([2, 0, null]);
});

test('a page has one checkpoint: an equal one is freed, another one replaces it', () => {
  const { states, pages } = setUp(3);
  const [page] = pages;
  states.attach(page!, { index: states.take(), numTokens: 2 });
  states.attach(page!, { index: states.take(), numTokens: 2 });
  expect([states.find(page!), states.numCheckpoints]).toEqual([{ index: 0, numTokens: 2 }, 1]);
  states.checkIntegrity([]); // none is lost
  states.attach(page!, { index: states.take(), numTokens: 4 });
  expect(states.find(page!)).toMatchObject({ numTokens: 4 });
  expect(states.numCheckpoints).toBe(1);
  states.drop(page!);
  states.drop(page!);
  expect([states.find(page!), states.numCheckpoints]).toEqual([null, 0]);
  states.checkIntegrity([]);
});

test('the check finds a state that is lost or used twice, and a checkpoint of a page that is free', () => {
  const { states, pages } = setUp(3);
  const running = states.take();
  states.attach(pages[0]!, { index: states.take(), numTokens: 4 });
  states.checkIntegrity([running]);
  expect(() => states.checkIntegrity([])).toThrow('2 of 3 states');
  expect(() => states.checkIntegrity([running, running])).toThrow('4 of 3 states');
  expect(() => states.checkIntegrity([1])).toThrow('3 of 3 states');
  pages[0]!.numRefs = 0;
  expect(() => states.checkIntegrity([running])).toThrow('a checkpoint of a page that is free');
});

test('a step of several tokens leaves a copy at the last page border that it reaches', () => {
  const { states, state, pages } = setUp(8);
  state.resume(null, 0);
  expect(state.held).toEqual([0]);
  expect(state.step(0, 10)).toEqual({ index: 0, copy: { index: 1, numRows: 8 } });
  expect(state.held).toEqual([0, 1]);
  state.savePending(pages, 10);
  state.savePending(pages, 10); // there is nothing left to save
  expect([states.find(pages[0]!), states.find(pages[1]!)]).toEqual([null, { index: 1, numTokens: 4 }]);
  expect(state.step(10, 1)).toEqual({ index: 0, copy: null });
  expect(state.step(11, 1)).toEqual({ index: 0, copy: null }); // one token that fills a page
  expect(state.step(12, 3)).toEqual({ index: 0, copy: null }); // the border is behind it
  expect(state.step(15, 2)).toEqual({ index: 0, copy: { index: 2, numRows: 1 } });
  states.checkIntegrity(state.held);
});

test('a sequence that generates leaves a copy every 64 tokens', () => {
  const { state, pages } = setUp(4);
  state.resume(null, 0);
  const copied: number[] = [];
  for (let start = 0; start < 130; start++) {
    if (state.step(start, 1).copy !== null) copied.push(start + 1);
    state.savePending(
      Array.from({ length: 40 }, (_, i) => pages[i % 20]!),
      start + 1,
    );
  }
  expect(copied).toEqual([64, 128]);
});

test('a copy is saved only if the tokens up to it were computed', () => {
  for (const [numComputed, numCheckpoints] of [
    [7, 0],
    [8, 1],
    [9, 1],
  ] as const) {
    // prettier-ignore
    const { states, state, pages } = setUp(4);
    state.resume(null, 0);
    state.step(0, 9);
    state.savePending(pages, numComputed);
    expect([numComputed, states.numCheckpoints]).toEqual([numComputed, numCheckpoints]);
    states.checkIntegrity(state.held);
  }
});

test('without a free state, a step leaves no copy', () => {
  const { state } = setUp(1);
  state.resume(null, 0);
  expect(state.step(0, 10)).toEqual({ index: 0, copy: null });
});

test('steps follow one another, and a sequence has one state', () => {
  const { state } = setUp(4);
  expect(() => state.step(0, 1)).toThrow('a step from token 0 with a state of 0 tokens');
  state.resume(null, 0);
  state.step(0, 3);
  expect(() => state.step(2, 1)).toThrow('a step from token 2 with a state of 3 tokens');
  expect(() => state.resume(null, 3)).toThrow('a sequence with a state took another one');
});

test('the end of a sequence leaves its state with the last page', () => {
  const { states, state, pages } = setUp(4);
  state.saveFinal(pages, 6); // has no state
  expect(states.numCheckpoints).toBe(0);
  state.resume(null, 0);
  state.step(0, 6);
  state.saveFinal(pages, 6);
  expect([state.index, state.held]).toEqual([null, []]);
  expect(states.find(pages[0]!)).toEqual({ index: 1, numTokens: 4 });
  expect(states.find(pages[1]!)).toEqual({ index: 0, numTokens: 2 });
  expect([state.canResume(pages[1]!, 2), state.canResume(pages[1]!, 4), state.canResume(pages[2]!, 2)]).toEqual([
    true,
    false,
    false,
  ]);
  states.checkIntegrity([]);
});

test('a whole last page gets a checkpoint of all its tokens', () => {
  const { states, state, pages } = setUp(4);
  state.resume(null, 0);
  state.step(0, 8);
  state.saveFinal(pages, 8);
  expect(states.find(pages[1]!)).toMatchObject({ numTokens: 4 });
  expect(states.numCheckpoints).toBe(1);
  states.checkIntegrity([]);
});

test('the state of an aborted step is given back', () => {
  for (const [held, numComputed] of [
    [20, 3],
    [0, 5],
  ] as const) {
    // prettier-ignore
    const { states, state, pages } = setUp(4);
    state.resume(null, 0);
    state.step(0, 5);
    state.saveFinal(pages.slice(0, held), numComputed === 5 ? 0 : numComputed);
    expect([state.held, states.numCheckpoints]).toEqual([[], 0]);
    states.checkIntegrity([]);
  }
  const { states, state } = setUp(4);
  state.resume(null, 0);
  state.step(0, 5);
  state.discard();
  state.discard();
  expect(state.held).toEqual([]);
  states.checkIntegrity([]);
});

test('a sequence continues with the bytes of the checkpoint, which counts as used', () => {
  const { states, state, pages } = setUp(4);
  for (const [i, page] of pages.slice(0, 3).entries()) {
    const index = states.take();
    states.bytesOf(index).fill(10 + i);
    states.attach(page, { index, numTokens: 4 });
  }
  state.resume(pages[1]!, 8);
  expect(state.index).toBe(3);
  expect([...states.bytesOf(3)]).toEqual([11, 11]);
  expect(state.step(8, 1)).toEqual({ index: 3, copy: null });
  expect([states.take(), states.take()]).toEqual([0, 2]);
  expect(states.find(pages[1]!)).toEqual({ index: 1, numTokens: 4 });
  const last = createSequenceState(states, PAGE_TOKENS);
  last.resume(pages[1]!, 8); // with no other state left it takes the checkpoint's own
  expect([last.index, [...states.bytesOf(1)], states.numCheckpoints]).toEqual([1, [11, 11], 0]);
});

test('a prompt can continue after its last page with a whole checkpoint, or at the end of a saved page', () => {
  const { states, state, pages } = setUp(8);
  states.attach(pages[1]!, { index: states.take(), numTokens: 4 });
  states.attach(pages[2]!, { index: states.take(), numTokens: 3 });
  const [first, second, third, fourth] = pages;
  expect(state.usablePages(pages)).toBe(2);
  expect(state.usablePages([first!])).toBe(0);
  const whole = [first!, second!, fourth!];
  const match = { pages: whole, partial: { page: third!, numTokens: 3 } };
  expect(usableMatch(match, state)).toBe(match);
  const shorter = { pages: whole, partial: { page: third!, numTokens: 2 } };
  expect(usableMatch(shorter, state)).toEqual({ pages: [first, second], partial: null });
  expect(usableMatch({ pages: whole, partial: null }, state)).toEqual({ pages: [first, second], partial: null });
  expect(usableMatch(shorter, null)).toBe(shorter);
});
