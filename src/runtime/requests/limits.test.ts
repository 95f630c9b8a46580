import { expect, test } from 'vitest';
import { resolveRequestLimits } from './limits.ts';

test('waits may be as long as a timer can be', () => {
  expect(resolveRequestLimits({ modelWaitMs: 0, firstEventMs: 2_147_483_647 }).firstEventMs).toBe(2_147_483_647);
  expect(() => resolveRequestLimits({ modelWaitMs: 2_147_483_648 })).toThrow('modelWaitMs');
});
