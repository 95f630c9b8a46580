import { expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { lossOf, replaceDelayMs } from './engine-loss.ts';

test.each([
  [new RuvLLMError('engine_stalled', ''), 'stalled'],
  [new RuvLLMError('engine_crashed', ''), 'crashed'],
  [new RuvLLMError('kernel_failed', ''), null],
  [Object.assign(new Error('engine_crashed'), { code: 'engine_crashed' }), null],
])('%o is the loss of an engine: %s', (error, loss) => {
  expect(lossOf(error)).toBe(loss);
});

test('the delay before an engine is replaced doubles from the second early loss on, up to half a minute', () => {
  const delays = [0, 1, 2, 3, 4, 7, 8, 9, 50].map(replaceDelayMs);
  expect(delays).toEqual([0, 0, 500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
});
