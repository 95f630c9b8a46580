import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { TokenSample } from '../micro-lora/types.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { findContradictions } from './contradictions.ts';
import { isCutOff, lessonOf, ratedOf } from './examples.ts';
import type { ExaminedAnswers } from './examined.ts';
import { microConfig } from './micro-factors.ts';
import type { ResolvedSonaOptions } from './options.ts';
import type { Probes } from './probes.ts';
import { normalizeText } from './same-lesson.ts';
import { type Servings, servingKey } from './serving.ts';
import type { InstantEvent, InstantJob, InstantReport, LearningModel, LearningWork, SonaStats } from './types.ts';

export interface InstantLoopContext {
  readonly trajectories: Trajectories;
  readonly work: LearningWork;
  readonly servings: Servings;
  readonly options: ResolvedSonaOptions;
  readonly examined: ExaminedAnswers;
  readonly probes: Probes;
  readonly stats: { -readonly [K in keyof SonaStats]: SonaStats[K] };
  /** Throws `not_loaded`. */
  modelOf(modelId: string): LearningModel;
  onInstant(event: InstantEvent): void;
}

/** Answers that are learned again after a version or a deletion: each takes a pass of the model. */
const MAX_TAUGHT_AGAIN = 64;
/** Rated requests among which contradictions are looked for, the newest ones. */
const MAX_COMPARED = 100;
/** Praised answers that no step may change, the newest ones. */
const MAX_PRAISED = 16;

const UNCHANGED = {
  isApplied: false,
  lossBefore: null,
  lossAfter: null,
  elapsedMs: 0,
  version: null,
  supersedes: [],
} as const;

const numbered = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Loop A: one step from one rated answer. */
export function createInstantLoop(context: InstantLoopContext) {
  const { trajectories, work, servings, examined, probes, options, stats, modelOf } = context;

  async function adapt(tenant: string, trajectory: Trajectory): Promise<InstantReport> {
    const report = await step(tenant, trajectory);
    context.onInstant({ tenant, requestId: trajectory.requestId, model: trajectory.model, ...report });
    return report;
  }

  async function step(tenant: string, trajectory: Trajectory): Promise<InstantReport> {
    const skip = (reason: string, outcome: 'skipped' | 'superseded' = 'skipped'): InstantReport => ({
      ...UNCHANGED,
      outcome,
      reason,
    });
    const lesson = lessonOf(trajectory);
    if (lesson === null) return skip(`nothing to learn: the verdict is ${trajectory.verdict}`);
    const model = modelOf(trajectory.model);
    const example = await model.encodeExample(trajectory, lesson.answer, { isCutOff: isCutOff(trajectory) });
    if (example === null) return skip('nothing to learn: the prompt was not kept, or is too long');
    const rated = await trajectories.find(tenant, { ...ratedOf(model.id), limit: MAX_COMPARED });
    const { replacedBy, supersedes, numOtherUsers } = findContradictions(trajectory, rated);
    if (replacedBy !== null) return skip(`superseded: ${replacedReason(replacedBy.requestId)}`, 'superseded');
    await supersede(tenant, model, trajectory.requestId, supersedes);
    const serving = await servings.of(tenant, model);
    // With a version the logits differ from those of the file.
    const samples = await (serving.version === 0
      ? examined.of(tenant, model, example)
      : model.examine(tenant, example));
    const isPraise = lesson.weight > 0 && trajectory.correction === null;
    const outcome = await work.instant({
      key: servingKey(tenant, model.id),
      config: microConfig(model),
      state: serving.micro,
      samples,
      quality: lesson.weight > 0 ? 1 : 0,
      isPraise,
      question: trajectory.query,
      answer: lesson.answer,
      probes: (await probes.of(tenant, model, Array.isArray(trajectory.prompt))).flatMap(({ samples }) => samples!),
      praised: await praisedAnswers(tenant, model, trajectory, rated),
      learningRate: options.instantLearningRate,
    });
    // States and factors stay inside: the report goes to the sender of the feedback.
    const { isApplied, result, lossBefore, lossAfter, elapsedMs } = outcome;
    const notes = [
      supersedes.length === 0 ? '' : `; replaces ${numbered(supersedes.length, 'earlier rating')} of this question`,
      numOtherUsers === 0 ? '' : `; ${numbered(numOtherUsers, 'other user')} corrected this question differently`,
    ];
    const report = {
      outcome: result,
      isApplied,
      reason: outcome.reason + notes.join(''),
      lossBefore,
      lossAfter,
      elapsedMs,
      supersedes: supersedes.map(({ requestId }) => requestId),
    };
    if (outcome.state === null) {
      if (result === 'refused') stats.numInstantRefused++;
      return { ...report, version: null };
    }
    stats.numInstant++;
    await servings.addStep(tenant, model, trajectory.requestId, outcome);
    return { ...report, version: serving.version };
  }

  /** The newest praised answers to other questions, as far as they were examined. */
  async function praisedAnswers(
    tenant: string,
    model: LearningModel,
    { query }: Trajectory,
    rated: readonly Trajectory[],
  ): Promise<InstantJob['praised']> {
    const question = normalizeText(query);
    const isPraised = (one: Trajectory): boolean =>
      one.verdict === 'success' && one.correction === null && normalizeText(one.query) !== question;
    const answers: { question: string; samples: readonly TokenSample[] }[] = [];
    for (const one of rated.filter(isPraised).slice(0, MAX_PRAISED)) {
      const example = await model.encodeExample(one, one.answer, { isCutOff: isCutOff(one) });
      const samples = example && (await examined.stored(tenant, model, example));
      if (samples !== null) answers.push({ question: one.query, samples });
    }
    return answers;
  }

  /** Reports replaced feedback; its steps are undone by learning the other ones again. */
  async function supersede(
    tenant: string,
    model: LearningModel,
    newestId: string,
    replaced: readonly Trajectory[],
  ): Promise<void> {
    const gone = new Set(replaced.map(({ requestId }) => requestId));
    const { learnedFrom } = await servings.of(tenant, model);
    if (learnedFrom.some((id) => gone.has(id))) {
      await servings.dropMicro(tenant, model.id);
      await servings.renew(tenant, model);
      await teachAgain(tenant, model, learnedFrom.filter((id) => !gone.has(id) && id !== newestId)); // prettier-ignore
    }
    for (const requestId of gone) {
      const reason = `superseded: ${replacedReason(newestId)}`;
      context.onInstant({ tenant, requestId, model: model.id, ...UNCHANGED, outcome: 'superseded', reason });
    }
  }

  /** Learns the newest of these answers again; returns how many of them changed something. */
  async function teachAgain(tenant: string, model: LearningModel, requestIds: readonly string[]): Promise<number> {
    let count = 0;
    for (const requestId of requestIds.slice(-MAX_TAUGHT_AGAIN)) {
      const trajectory = await trajectories.get(tenant, requestId);
      if (trajectory?.model === model.id && (await adapt(tenant, trajectory)).isApplied) count++;
    }
    return count;
  }

  return { adapt, teachAgain };
}
export type InstantLoop = ReturnType<typeof createInstantLoop>;

const replacedReason = (requestId: string): string =>
  `newer feedback of the same user on this question says otherwise (request ${requestId})`;
