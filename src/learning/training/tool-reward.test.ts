import { expect, test } from 'vitest';
import { rewardOf } from './tool-reward.ts';

const task = { expected: { city: 'Rome', days: 3, tags: ['a', 'b'] } };
const reward = (answer: string, problems: readonly string[] = []) => rewardOf(answer, task, () => problems).value;

test('[TR12] the whole answer must be valid and right: hacks of the schema check earn nothing', () => {
  expect(reward('{"tags": ["a","b"], "days": 3, "city": "Rome"}')).toBe(1);
  expect(reward(' {"city": "Rome", "days": 3, "tags": ["a","b"]}\n')).toBe(1);
  expect(reward('{}')).toBe(0);
  expect(reward('{"city": "", "days": 0, "tags": []}')).toBe(0);
  expect(reward('{"city": "Rome", "days": 3, "tags": ["a","b"]}', ['"days" must be 1'])).toBe(0);
  expect(reward('[{"city": "Rome", "days": 3, "tags": ["a","b"]}]')).toBe(0);
  expect(reward('{"city": "Rome", "days": 3, "tags": ["a","b"]} {"city": "Oslo"}')).toBe(0);
  expect(reward('Here it is: {"city": "Rome", "days": 3, "tags": ["a","b"]}')).toBe(0);
  // Every choice under one key: the last one would count.
  expect(reward('{"city": "Oslo", "city": "Rome", "days": 3, "tags": ["a","b"]}')).toBe(0);
  expect(reward('{"city": "a:b", "days": 3, "tags": ["a","b"]}')).toBeCloseTo(2 / 3, 10);
});

test('[TR12] a partly right call earns the share of right arguments, and additional ones cost', () => {
  expect(reward('{"city": "Rome", "days": 2, "tags": ["b","a"]}')).toBeCloseTo(1 / 3, 10);
  expect(reward('{"city": "Rome"}')).toBeCloseTo(1 / 3, 10);
  expect(reward('{"city": "Rome", "days": 3, "tags": ["a","b"], "more": 1}')).toBe(0.75);
  expect(reward('{"city": "Rome", "days": "3", "tags": ["a","b"]}')).toBeCloseTo(2 / 3, 10);
});
