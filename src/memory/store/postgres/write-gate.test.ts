import { expect, test } from 'vitest';
import { createWriteGate } from './write-gate.ts';

test('[PG7] one that must be alone comes after all before it and before all after it, also when they fail', async () => {
  const gate = createWriteGate();
  const events: string[] = [];
  const step =
    (name: string, fails = false) =>
    async () => {
      events.push(`${name}+`);
      await new Promise((resolve) => setTimeout(resolve, 1));
      events.push(`${name}-`);
      if (fails) throw new Error(name);
    };
  const all = [gate.run(step('a', true)), gate.run(step('b')), gate.alone(step('X', true)), gate.alone(step('Y')), gate.run(step('c'))]; // prettier-ignore
  const outcomes = Promise.allSettled(all);
  await gate.settle();
  expect(events).toEqual(['a+', 'b+', 'a-', 'b-', 'X+', 'X-', 'Y+', 'Y-', 'c+', 'c-']);
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']); // prettier-ignore
});
