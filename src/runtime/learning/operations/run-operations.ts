import { z } from 'zod';
import { notFound } from '../../../memory/operations/operation.ts';
import { defineLearning, type LearningOperation, model, waitFor } from './define.ts';
import type { LearningControl } from './control.ts';
import { lineOf } from './learned-lines.ts';
import { LOOPS, RUN_OF, type RunOf } from './run-parts.ts';

/** Most proxies give up on an answer after a minute. */
const MAX_WAIT_MS = 50_000;

const runOf = z.enum(RUN_OF).default('all');

/** Name of a run: its model or its version line. */
const nameOf = (control: LearningControl, of: RunOf, named: string | undefined): string =>
  lineOf(control, of === 'all' ? 'model' : of, named).name;

const run = defineLearning({
  name: 'learn.run',
  summary:
    'Runs a loop now, of the model, the order of what is recalled and who answers, or of one of them: what comes of each part, or, after waitMs, that it runs; learn.status tells the rest.',
  scope: 'admin',
  input: z.strictObject({
    loop: z.enum(LOOPS).default('background'),
    model,
    of: runOf,
    waitMs: z.int().min(0).max(MAX_WAIT_MS).default(20_000),
  }),
  async run(control, tenant, { loop, model: named, of, waitMs }) {
    const id = nameOf(control, of, named);
    const { ended } = control.runs.start(tenant, id, loop, of);
    await waitFor(ended, waitMs);
    return { ...control.runs.list(tenant).find((one) => one.model === id)! };
  },
});

const cancel = defineLearning({
  name: 'learn.cancel',
  summary: 'Ends a run at its next step; the next run of the loop goes on from there.',
  scope: 'admin',
  input: z.strictObject({ model, of: runOf }),
  async run(control, tenant, { model: named, of }) {
    const id = nameOf(control, of, named);
    const cancelled = control.runs.cancel(tenant, id);
    if (cancelled === null) throw notFound(`nothing runs for ${id}`);
    return { ...cancelled, isCancelling: true };
  },
});

export const runOperations: readonly LearningOperation[] = [run, cancel];
