import { expect, test } from 'vitest';
import { createTransferSpeed } from './transfer-speed.ts';

function setUp() {
  const clock = { ms: 0 };
  return { clock, speed: createTransferSpeed(() => clock.ms) };
}

test('a new measurement moves the average of a page by a fifth', () => {
  const { speed } = setUp();
  expect([speed.computeMs, speed.firstMs, speed.nextMs]).toEqual([null, null, null]);
  speed.onComputed(2, 20);
  speed.onFirst(30);
  speed.onNext(4, 16);
  expect([speed.computeMs, speed.firstMs, speed.nextMs]).toEqual([10, 30, 4]);
  speed.onComputed(1, 20);
  speed.onFirst(40);
  speed.onNext(1, 14);
  expect([speed.computeMs, speed.firstMs, speed.nextMs]).toEqual([12, 32, 6]);
});

/** Computing a page takes 10 ms. Milliseconds of the first page and of each further one; pages that are worth reading. */
const CASES: [first: number, next: number | null, isWorthwhile: boolean[]][] = [
  [5, null, [true, true, true]],
  [10, null, [false, true, true]], // as fast is not faster
  [25, null, [false, false, true]],
  [15, 4, [false, true, true]], // 15, 19, 23
  [25, 4, [false, false, false]], // 25, 29, 33
];

test.each(CASES)('a first page of %d ms and further ones of %d ms', (firstMs, nextMs, expected) => {
  const measured = expected.map((_, i) => {
    const { speed } = setUp();
    speed.onComputed(1, 10);
    speed.onFirst(1000);
    for (let j = 0; j < 200; j++) speed.onFirst(firstMs);
    if (nextMs !== null) speed.onNext(1, nextMs);
    speed.isWorthwhile(1);
    speed.isWorthwhile(1);
    return speed.isWorthwhile(i + 1);
  });
  // The average of the first page ends a little above what was measured.
  expect(measured).toEqual(expected);
});

test('a store that was slower is tried every 30 seconds, and one that was not measured at once', () => {
  const { clock, speed } = setUp();
  speed.onFirst(1000);
  expect([speed.isWorthwhile(1), speed.isWorthwhile(1)]).toEqual([true, true]);
  clock.ms = 100_000;
  speed.onComputed(1, 10);
  expect([speed.isWorthwhile(1), speed.isWorthwhile(1)]).toEqual([true, false]);
  clock.ms += 29_999;
  expect(speed.isWorthwhile(1)).toBe(false);
  clock.ms += 1;
  expect([speed.isWorthwhile(1), speed.isWorthwhile(1)]).toEqual([true, false]);
  const fresh = setUp();
  fresh.speed.onComputed(1, 10);
  expect([fresh.speed.isWorthwhile(1), fresh.speed.isWorthwhile(1)]).toEqual([true, true]);
});
