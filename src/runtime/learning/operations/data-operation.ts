import { z } from 'zod';
import type { Trajectory } from '../../../memory/schemas/trajectory.ts';
import { defineLearning, model } from './define.ts';

const MAX_PAGE = 200;
const MAX_CURSOR = 1024;

/** A rated request as a line of a data set for `ruvllm train`; null if its prompt was not kept. */
function toLine({ requestId, model: answeredBy, prompt, answer, correction, verdict }: Trajectory) {
  if (prompt === null || answer === '') return null;
  const isPlain =
    typeof prompt === 'string' || prompt.every(({ role }) => ['system', 'user', 'assistant'].includes(role));
  if (!isPlain) return null;
  return {
    prompt,
    completion: answer,
    ...(verdict === 'success' ? { thumbs: 'up' } : verdict === 'failure' ? { thumbs: 'down' } : {}),
    ...(correction === null ? {} : { correction }),
    id: requestId,
    source: answeredBy,
  };
}

/** Exports rated requests as training data. */
export const dataOperation = defineLearning({
  name: 'learn.data',
  summary:
    'Rated requests as lines of a data set for `ruvllm train`, the oldest first; `next` is the cursor of the next page. Neutral ratings without a correction, tool calls and prompts that were not kept are left out and counted.',
  input: z.strictObject({
    model,
    after: z.string().max(MAX_CURSOR).optional(),
    limit: z.int().min(1).max(MAX_PAGE).default(MAX_PAGE),
  }),
  async run({ learning }, tenant, { model: named, after, limit }) {
    const conditions = [
      { field: 'verdict', is: '!=', value: 'unknown' } as const,
      ...(named === undefined ? [] : [{ field: 'model', is: '=', value: named } as const]),
    ];
    const query = { conditions, order: 'oldest', limit, ...(after === undefined ? {} : { after }) } as const;
    const { trajectories, next } = await learning.trajectories.page(tenant, query);
    const useful = trajectories.filter(({ verdict, correction }) => verdict !== 'partial' || correction !== null);
    const lines = useful.map(toLine).filter((line) => line !== null);
    return { lines, numLeftOut: trajectories.length - lines.length, next };
  },
});
