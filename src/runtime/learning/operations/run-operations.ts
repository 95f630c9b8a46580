import { z } from 'zod';
import { notFound } from '../../../memory/operations/operation.ts';
import { defineLearning, type LearningOperation, model, waitFor } from './define.ts';
import type { LearningControl } from './control.ts';
import { lineOf } from './learned-lines.ts';
import { LOOPS, RUN_OF, type RunOf } from './run-parts.ts';

/** Most proxies time out after a minute. */
const MAX_WAIT_MS = 50_000;

const runOf = z.enum(RUN_OF).default('all');

/** The id of a run: its model, or its line of versions. */
const nameOf = (control: LearningControl, of: RunOf, named: string | undefined): string =>
  lineOf(control, of === 'all' || of === 'federation' ? 'model' : of, named).name;

const run = defineLearning({
  name: 'learn.run',
  summary:
    'Runs a learning loop now: for the model, re-ranking and routing, or one of them; `federation` merges the adapters of trusted nodes. Returns the outcome of each part, or after waitMs that the run continues; learn.status has its outcome.',
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
  summary: 'Cancels a run at its next step; the next run continues from there.',
  input: z.strictObject({ model, of: runOf }),
  async run(control, tenant, { model: named, of }) {
    const id = nameOf(control, of, named);
    const cancelled = control.runs.cancel(tenant, id);
    if (cancelled === null) throw notFound(`no run in progress for ${id}`);
    return { ...cancelled, isCancelling: true };
  },
});

export const runOperations: readonly LearningOperation[] = [run, cancel];
