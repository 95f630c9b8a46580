import { z } from 'zod';
import { notFound } from '../../../memory/operations/operation.ts';
import { defineLearning, type LearningOperation, model, waitFor } from './define.ts';
import { LOOPS } from './runs.ts';

/** Most proxies give up on an answer after a minute. */
const MAX_WAIT_MS = 50_000;

const run = defineLearning({
  name: 'learn.run',
  summary: 'Runs a loop now: what comes of it, or, after waitMs, that it runs; learn.status tells the rest.',
  scope: 'admin',
  input: z.strictObject({
    loop: z.enum(LOOPS).default('background'),
    model,
    waitMs: z.int().min(0).max(MAX_WAIT_MS).default(20_000),
  }),
  async run(control, tenant, { loop, model: named, waitMs }) {
    const id = control.modelName(named);
    const { ended } = control.runs.start(tenant, id, loop);
    await waitFor(ended, waitMs);
    return { ...control.runs.list(tenant).find((one) => one.model === id)! };
  },
});

const cancel = defineLearning({
  name: 'learn.cancel',
  summary: 'Ends a run at its next step; the next run of the loop goes on from there.',
  scope: 'admin',
  input: z.strictObject({ model }),
  async run(control, tenant, { model: named }) {
    const id = control.modelName(named);
    const cancelled = control.runs.cancel(tenant, id);
    if (cancelled === null) throw notFound(`nothing runs for ${id}`);
    return { ...cancelled, isCancelling: true };
  },
});

export const runOperations: readonly LearningOperation[] = [run, cancel];
