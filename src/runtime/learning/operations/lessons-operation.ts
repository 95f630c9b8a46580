import { z } from 'zod';
import { adapterLine } from '../../../learning/sona/learned-adapter.ts';
import type { Trajectory } from '../../../memory/schemas/trajectory.ts';
import { OUTCOME_UNKNOWN } from '../feedback-log.ts';
import type { LearningControl } from './control.ts';
import { defineLearning, model, versionNumber } from './define.ts';
import { lineOf } from './learned-lines.ts';

/** Longer texts are cut; the audit log has them whole. */
const MAX_CHARS = 500;

const isRated = { field: 'verdict', is: '!=', value: 'unknown' } as const;

/** The requests that a version was trained on, the newest first. Deleted and expired ones are left out. */
async function trainedOn({ learning }: LearningControl, tenant: string, line: string, version: number, limit: number) {
  const { learnedFrom } = await learning.sona.versions.get(tenant, line, version);
  const newestIds = learnedFrom.slice(-limit).toReversed();
  const found = await Promise.all(newestIds.map((id) => learning.trajectories.get(tenant, id)));
  return { rated: found.filter((one) => one !== null), isComplete: learnedFrom.length <= limit };
}

async function newestRated({ learning }: LearningControl, tenant: string, named: string | undefined, limit: number) {
  const conditions = named === undefined ? [isRated] : [isRated, { field: 'model', is: '=', value: named } as const];
  const found = await learning.trajectories.find(tenant, { conditions, limit: limit + 1 });
  return { rated: found.slice(0, limit), isComplete: found.length <= limit };
}

/** By model, the requests that its active version was trained on. */
async function activeLessons({ learning }: LearningControl, tenant: string, models: ReadonlySet<string>) {
  const lessonsOf = new Map<string, { readonly version: number; readonly requestIds: ReadonlySet<string> }>();
  for (const id of models) {
    const active = await learning.sona.versions.active(tenant, adapterLine(id));
    if (active !== null) lessonsOf.set(id, { version: active.version, requestIds: new Set(active.learnedFrom) });
  }
  return lessonsOf;
}

export const lessonsOperation = defineLearning({
  name: 'learn.lessons',
  summary:
    'Rated answers, the newest first, with what was learned from each. With `version`: the answers that it was trained on.',
  input: z.strictObject({
    model,
    version: versionNumber.min(1).optional(),
    limit: z.int().min(1).max(500).default(50),
  }),
  async run(control, tenant, { model: named, version, limit }) {
    const { rated, isComplete } =
      version === undefined
        ? await newestRated(control, tenant, named, limit)
        : await trainedOn(control, tenant, lineOf(control, 'model', named).line, version, limit);
    const lessonsOf = await activeLessons(control, tenant, new Set(rated.map((one) => one.model)));
    const cut = (long: string): string => long.slice(0, MAX_CHARS);
    const lessons = rated.map((one: Trajectory) => {
      const active = lessonsOf.get(one.model);
      const { state, reason, lossBefore, lossAfter } = one.outcome ?? OUTCOME_UNKNOWN;
      return {
        requestId: one.requestId,
        createdMs: one.createdMs,
        model: one.model,
        query: cut(one.query),
        answer: cut(one.answer),
        correction: one.correction === null ? null : cut(one.correction),
        verdict: one.verdict,
        quality: one.quality,
        outcome: { state, reason, lossBefore, lossAfter },
        /** The active version, if it was trained on this answer. */
        version: active?.requestIds.has(one.requestId) === true ? active.version : null,
      };
    });
    return { lessons, isComplete };
  },
});
