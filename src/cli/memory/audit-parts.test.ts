import { expect, test } from 'vitest';
import { partsOf } from '../commands/audit.ts';

test('lists the parts of a latency in order, without empty ones', () => {
  const latency = { waitMs: 0.1234, embeddingMs: 0.5, policyMs: null, retrievalMs: 0, generationMs: 120, totalMs: 121, ttftMs: 30, writeMs: 0.2 }; // prettier-ignore
  expect(partsOf(latency)).toBe(
    'wait 0.123 ms · embedding 0.500 ms · generation 120.000 ms · ttft 30.000 ms · write 0.200 ms',
  );
});
