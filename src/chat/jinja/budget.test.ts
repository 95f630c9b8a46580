import { expect, test } from 'vitest';
import { type Budget, createBudget } from './budget.ts';
import { resolveTemplateLimits, type TemplateLimits } from './limits.ts';
import { chargeSearch, replaceText, splitText } from './text-search.ts';

const open = (limits: Partial<TemplateLimits>, now = () => 0): Budget =>
  createBudget(resolveTemplateLimits(limits), now);

const BOUNDARIES: [limit: keyof TemplateLimits, max: number, use: (budget: Budget) => void, message: string][] = [
  ['maxTextBytes', 8, (budget) => budget.text(4), '10 bytes in one string, limit 8 (maxTextBytes)'],
  ['maxTextBytes', 8, (budget) => budget.output(4, 0), '10 bytes in one string, limit 8 (maxTextBytes)'],
  ['maxItems', 4, (budget) => budget.items(4), '5 elements in one list, limit 4 (maxItems)'],
];

test.each(BOUNDARIES)('%s: %d are allowed and one more is not', (limit, max, use, message) => {
  use(open({ [limit]: max }));
  const more = open({ [limit]: max });
  const plusOne: Budget = {
    ...more,
    text: (chars) => more.text(chars + 1),
    output: (total, added) => more.output(total + 1, added),
    items: (count) => more.items(count + 1),
  };
  expect(() => use(plusOne)).toThrow(
    expect.objectContaining({ code: 'template_error', message: `chat template stopped: ${message}` }),
  );
});

test('steps, depth and work add up', () => {
  const steps = open({ maxSteps: 3 });
  for (let i = 0; i < 3; i++) steps.step();
  expect(() => steps.step()).toThrow('4 steps, limit 3 (maxSteps)');
  const depth = open({ maxDepth: 2 });
  depth.enter();
  depth.enter();
  depth.leave();
  depth.enter();
  expect(() => depth.enter()).toThrow('3 nested evaluations, limit 2 (maxDepth)');
  const work = open({ maxWorkBytes: 100 });
  work.work(10); // 2 bytes each
  work.text(10);
  work.output(100, 10);
  work.items(5); // 8 bytes each
  expect(() => work.work(1)).toThrow('102 bytes of work, limit 100 (maxWorkBytes)');
  for (const use of ['work', 'text', 'items'] as const) expect(() => open({})[use](NaN)).toThrow('NaN');
});

test('reads the clock every 256 steps and every 4 MiB of work', () => {
  let ms = 5;
  let numReads = 0;
  const now = (): number => (numReads++, ms);
  const budget = open({ maxTimeMs: 10, maxTextBytes: 2 ** 28 }, now);
  for (let i = 0; i < 255; i++) budget.step();
  expect(numReads).toBe(1);
  budget.step();
  expect(numReads).toBe(2);
  budget.work(2 ** 21 - 1);
  expect(numReads).toBe(2);
  budget.work(1);
  expect(numReads).toBe(3);
  budget.work(2 ** 21 - 1);
  expect(numReads).toBe(3);
  ms = 15;
  budget.work(1);
  expect(numReads).toBe(4);
  ms = 16;
  expect(() => budget.work(2 ** 21)).toThrow('11 milliseconds, limit 10 (maxTimeMs)');
});

test('text is charged before it is built', () => {
  const work = (use: (budget: Budget) => unknown): number => {
    let total = 0;
    use({ ...open({}), work: (n) => (total += n), text: (n) => (total += n), items: (n) => (total += 4 * n) });
    return total;
  };
  expect(work((budget) => chargeSearch(budget, 'x'.repeat(80), 'y'.repeat(16)))).toBe(240);
  expect(work((budget) => splitText(budget, 'a,b', ','))).toBe(3 * 1.125 + 4 * 2);
  expect(work((budget) => replaceText(budget, 'aXbXc', 'X', '', 0))).toBe(0);
  expect(work((budget) => replaceText(budget, 'aXbXc', 'X', '+++', -1))).toBe(5 * 1.125 + 4 * 3 + 9);
  expect(work((budget) => replaceText(budget, 'aXbXc', 'X', '+++', 1))).toBe(5 * 1.125 + 4 * 3 + 7);
  expect(work((budget) => replaceText(budget, 'ab', '', '-', -1))).toBe(4 * 4 + 5);
});
