import { RuvLLMError } from '../../core/errors.ts';
import type { TrainingState } from '../lora-training/training-state.ts';
import type { AdapterPlan, LearningWork } from '../sona/types.ts';
import type { ObjectiveItem, ObjectiveSpec } from './objectives.ts';
import type { ScheduleName } from './schedule.ts';

export interface RunSettings {
  readonly numEpochs: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly schedule: ScheduleName;
  readonly numWarmupSteps: number;
  readonly seed: number;
  /** Steps between evaluations of the validation part; null: once per epoch. */
  readonly evaluateEvery: number | null;
  /** Evaluations without a new best after which the run ends; 0: it never ends early. */
  readonly patience: number;
}

export interface TrainingJob {
  readonly plan: AdapterPlan;
  readonly objective: ObjectiveSpec;
  readonly items: readonly ObjectiveItem[];
  readonly settings: RunSettings;
}

export interface Evaluation {
  readonly step: number;
  /** Mean loss of the validation part. */
  readonly loss: number;
}

/** A stopped run: enough to continue to the same weights. */
export interface RunProgress {
  readonly state: TrainingState;
  readonly evaluations: readonly Evaluation[];
  /** Parameters of the evaluation with the lowest loss; null before the first. */
  readonly best: Float32Array | null;
}

export interface RunHooks {
  /** Mean loss of the validation part; null: there is none, and the last parameters are the result. */
  readonly evaluate: ((parameters: Float32Array) => Promise<number>) | null;
  /** Called about every `saveEveryMs`, after each evaluation, and before an abort. */
  save(progress: RunProgress): void;
  readonly saveEveryMs: number;
  onStep(step: { readonly step: number; readonly numSteps: number; readonly loss: number | null }): void;
  readonly signal: AbortSignal;
  now(): number;
}

export interface RunResult {
  readonly parameters: Float32Array;
  readonly evaluations: readonly Evaluation[];
  /** Steps of the returned parameters. */
  readonly bestStep: number;
  /** Steps of the run. */
  readonly numSteps: number;
  readonly stoppedBy: 'end' | 'early-stop';
}

/** Between progress displays. */
const SLICE_MS = 1000;
/** No step is stopped because of the time. */
export const NO_LIMIT_MS = 2 ** 31 - 1;

export const stepsOf = ({ items, settings }: Pick<TrainingJob, 'items' | 'settings'>): number =>
  settings.numEpochs * Math.ceil(items.length / settings.batchSize);

/** The evaluation with the lowest loss; of equal ones the first. */
const bestOf = (evaluations: readonly Evaluation[]): Evaluation | null =>
  evaluations.reduce<Evaluation | null>((best, one) => (best === null || one.loss < best.loss ? one : best), null);

/** Trains in slices; evaluates, saves and stops between them. A run that continues from `resume` ends at the same weights. */
export async function runTraining(
  work: Pick<LearningWork, 'train'>,
  job: TrainingJob,
  hooks: RunHooks,
  resume: RunProgress | null = null,
): Promise<RunResult> {
  const { settings, plan, objective, items } = job;
  const numSteps = stepsOf(job);
  const interval = settings.evaluateEvery ?? Math.ceil(items.length / settings.batchSize);
  let state = resume?.state ?? null;
  let best = resume?.best ?? null;
  const evaluations = [...(resume?.evaluations ?? [])];
  let savedMs = hooks.now();
  const save = (): void => {
    if (state !== null) hooks.save({ state, evaluations: [...evaluations], best });
    savedMs = hooks.now();
  };
  const hasStalled = (): boolean => {
    const last = bestOf(evaluations);
    if (settings.patience === 0 || last === null) return false;
    return evaluations.length - 1 - evaluations.indexOf(last) >= settings.patience;
  };

  let numDone = state?.numSteps ?? 0;
  // A step longer than a slice would start over each time.
  let areStepsLong = false;
  for (;;) {
    if (hooks.signal.aborted) {
      save();
      throw new RuvLLMError('aborted', `stopped after ${numDone} of ${numSteps} steps`, {
        data: { numDone, numSteps },
      });
    }
    // Also right after a resume: the run may have been stopped between a step and its evaluation.
    const isDue = numDone > 0 && (numDone % interval === 0 || numDone === numSteps);
    if (hooks.evaluate !== null && isDue && evaluations.at(-1)?.step !== numDone) {
      const { parameters } = state!;
      const loss = await hooks.evaluate(parameters);
      if (loss < (bestOf(evaluations)?.loss ?? Infinity)) best = parameters;
      evaluations.push({ step: numDone, loss });
      save();
    }
    if (numDone >= numSteps || hasStalled()) break;
    const nextStop = Math.min(numSteps, (Math.floor(numDone / interval) + 1) * interval);
    const outcome = await work.train({
      plan,
      objective,
      train: items,
      parameters: null,
      tasks: [],
      lambda: 0,
      avoid: [],
      state,
      timeLimitMs: areStepsLong ? NO_LIMIT_MS : SLICE_MS,
      maxSteps: areStepsLong ? 1 : nextStop - numDone,
      numEpochs: settings.numEpochs,
      batchSize: settings.batchSize,
      learningRate: settings.learningRate,
      schedule: { name: settings.schedule, numWarmupSteps: settings.numWarmupSteps, numSteps },
      seed: settings.seed,
    });
    state = outcome.state;
    areStepsLong ||= state.numSteps === numDone;
    numDone = state.numSteps;
    hooks.onStep({ step: numDone, numSteps, loss: outcome.losses.at(-1) ?? null });
    if (hooks.now() - savedMs >= hooks.saveEveryMs) save();
  }
  const lowest = bestOf(evaluations);
  return {
    parameters: best ?? state!.parameters,
    evaluations,
    bestStep: lowest?.step ?? numDone,
    numSteps: numDone,
    stoppedBy: numDone < numSteps ? 'early-stop' : 'end',
  };
}
