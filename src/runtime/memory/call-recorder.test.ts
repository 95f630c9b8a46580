import { expect, test } from 'vitest';
import type { GenerateChunk } from '../generation-types.ts';
import { createCallRecorder } from './call-recorder.ts';
import type { CallOutcome } from './types.ts';

function record(...ends: Partial<GenerateChunk>[]): CallOutcome {
  const outcomes: CallOutcome[] = [];
  const recorder = createCallRecorder({ finish: (outcome: CallOutcome) => outcomes.push(outcome) } as never, () => 0);
  const chunk = { text: 'a', toolCalls: [], usage: { promptTokens: 1, completionTokens: 1 }, timings: { queuedMs: 0, promptMs: 0 } }; // prettier-ignore
  for (const end of ends) recorder.add({ ...chunk, stopString: null, ...end } as never);
  recorder.end(null);
  return outcomes[0]!;
}

test('[LB18] an answer is complete if the model ended it', () => {
  expect(record({ finishReason: null }, { finishReason: 'stop' }).isComplete).toBe(true);
  expect(record({ finishReason: 'length' }).isComplete).toBe(false);
  expect(record({ finishReason: 'stop', stopString: '\n' } as never).isComplete).toBe(false);
  expect(record({ finishReason: null }).isComplete).toBe(false); // the client left
});
