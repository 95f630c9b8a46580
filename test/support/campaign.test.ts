import { expect, test } from 'vitest';
import { campaign, repeatedCase } from './campaign.ts';

test('a campaign is short by default and long on request', () => {
  const sizes = { short: 20, long: 1000 };
  expect(campaign(sizes, {})).toBe(20);
  expect(campaign(sizes, { RUVLLM_TEST_SIZE: 'short' })).toBe(20);
  expect(campaign(sizes, { RUVLLM_TEST_SIZE: 'long' })).toBe(1000);
});

test('rejects an unknown size instead of running the short form', () => {
  expect(() => campaign({ short: 1, long: 2 }, { RUVLLM_TEST_SIZE: 'all' })).toThrow('RUVLLM_TEST_SIZE is "all"');
});

test('one case of a campaign can be repeated by its number', () => {
  expect(repeatedCase({})).toBeNull();
  expect(repeatedCase({ RUVLLM_TEST_CASE: '69' })).toBe(69);
  expect(() => repeatedCase({ RUVLLM_TEST_CASE: '2/6' })).toThrow('RUVLLM_TEST_CASE is "2/6"');
});
