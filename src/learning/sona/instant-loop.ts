import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { lessonOf } from './examples.ts';
import { microConfig } from './micro-factors.ts';
import type { ResolvedSonaOptions } from './options.ts';
import { type Servings, servingKey } from './serving.ts';
import type { InstantEvent, InstantReport, LearningModel, LearningWork, SonaStats } from './types.ts';

export interface InstantLoopContext {
  readonly trajectories: Trajectories;
  readonly work: LearningWork;
  readonly servings: Servings;
  readonly options: ResolvedSonaOptions;
  readonly stats: { -readonly [K in keyof SonaStats]: SonaStats[K] };
  /** Throws `not_loaded`. */
  modelOf(modelId: string): LearningModel;
  onInstant(event: InstantEvent): void;
}

/** Answers that are learned again after a version or a deletion: each takes a pass of the model. */
const MAX_TAUGHT_AGAIN = 64;

/** Loop A: one step from one rated answer. */
export function createInstantLoop(context: InstantLoopContext) {
  const { trajectories, work, servings, options, stats, modelOf } = context;

  async function adapt(tenant: string, trajectory: Trajectory): Promise<InstantReport> {
    const report = await step(tenant, trajectory);
    context.onInstant({ tenant, requestId: trajectory.requestId, model: trajectory.model, ...report });
    return report;
  }

  async function step(tenant: string, trajectory: Trajectory): Promise<InstantReport> {
    const unchanged = {
      outcome: 'skipped',
      isApplied: false,
      lossBefore: null,
      lossAfter: null,
      elapsedMs: 0,
      version: null,
      supersedes: [],
    } as const;
    const lesson = lessonOf(trajectory);
    if (lesson === null) return { ...unchanged, reason: `nothing to learn: the verdict is ${trajectory.verdict}` };
    const model = modelOf(trajectory.model);
    const example = await model.encodeExample(trajectory, lesson.answer);
    if (example === null) return { ...unchanged, reason: 'nothing to learn: the prompt was not kept, or is too long' };
    const serving = await servings.of(tenant, model);
    const outcome = await work.instant({
      key: servingKey(tenant, model.id),
      config: microConfig(model),
      state: serving.micro,
      samples: await model.examine(tenant, example),
      quality: lesson.weight > 0 ? 1 : 0,
      learningRate: options.instantLearningRate,
    });
    // States and factors stay inside: the report goes to the sender of the feedback.
    const { isApplied, reason, lossBefore, lossAfter, elapsedMs } = outcome;
    const report = { isApplied, reason, lossBefore, lossAfter, elapsedMs, supersedes: [] };
    if (outcome.state === null) {
      stats.numInstantRefused++;
      return { ...report, outcome: 'refused', version: null };
    }
    stats.numInstant++;
    await servings.addStep(tenant, model, trajectory.requestId, outcome);
    return { ...report, outcome: 'learned', version: serving.version };
  }

  return {
    adapt,
    /** Learns the newest of these answers again; returns how many of them changed something. */
    async teachAgain(tenant: string, model: LearningModel, requestIds: readonly string[]): Promise<number> {
      let count = 0;
      for (const requestId of requestIds.slice(-MAX_TAUGHT_AGAIN)) {
        const trajectory = await trajectories.get(tenant, requestId);
        if (trajectory?.model === model.id && (await adapt(tenant, trajectory)).isApplied) count++;
      }
      return count;
    },
  };
}
export type InstantLoop = ReturnType<typeof createInstantLoop>;
