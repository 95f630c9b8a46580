import { RuvLLMError } from '../../core/errors.ts';
import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import {
  type BoundaryDetector,
  type BoundaryReport,
  type BoundaryState,
  createBoundaryDetector,
} from './boundary-detector.ts';
import {
  checkVector,
  createFisherEstimate,
  FISHER_DECAY,
  FISHER_FLOOR,
  type FisherEstimate,
  type FisherState,
} from './fisher.ts';

export interface EwcOptions {
  /** Default 2000. */
  readonly lambda?: number;
  readonly minLambda?: number;
  readonly maxLambda?: number;
  /** Tasks remembered, the oldest forgotten first; default 10. */
  readonly maxTasks?: number;
  /** Samples a task must have been seen with before it can be kept; default 100. */
  readonly minSamples?: number;
  /** Default 0.999. */
  readonly decay?: number;
  /** Default 1e-6. */
  readonly floor?: number;
}

/** Parameters that were good for something, and how much each of them mattered. */
export interface EwcTask {
  readonly anchor: Float32Array;
  readonly fisher: Float32Array;
  readonly lambda: number;
}

/** Everything an `Ewc` knows, as plain numbers. */
export interface EwcState {
  readonly numParameters: number;
  readonly lambda: number;
  readonly tasks: readonly EwcTask[];
  readonly fisher: FisherState;
  readonly boundary: BoundaryState;
}

export interface EwcStats {
  readonly numTasks: number;
  readonly numSamples: number;
  readonly lambda: number;
}

/** Elastic weight consolidation over any vector of parameters: pulls each back the more, the more older tasks need it. */
export interface Ewc {
  readonly numParameters: number;
  /** Adds the gradient of one sample to the Fisher estimate of the task being learned, and says whether it looks like another. */
  observe(gradient: Float32Array): BoundaryReport;
  observeEmbedding(embedding: Float32Array): BoundaryReport;
  canConsolidate(): boolean;
  /** Keeps the task just learned; throws `conflict` with both numbers after too few samples. */
  consolidate(parameters: Float32Array): void;
  /** Σ over tasks of λ/2 · Σ F·(θ − θ*)²; `lambda` replaces that of each task. */
  penalty(parameters: Float32Array, lambda?: number): number;
  /** Adds the slope of the penalty. */
  addPenaltyGradient(parameters: Float32Array, gradient: Float32Array, lambda?: number): void;
  /** Held-out losses of an older task before and after learning: λ × 1.1 where it got worse, × 0.9 where not. Returns λ. */
  adaptLambda(lossBefore: number, lossAfter: number): number;
  stats(): EwcStats;
  state(): EwcState;
}

/** Above any adapter or router; a vector of it takes 256 MiB. */
const MAX_PARAMETERS = 2 ** 26;
const LAMBDA_UP = 1.1;
const LAMBDA_DOWN = 0.9;
/** Losses closer than this share of the first are the same: held-out sets are small. */
const STABLE_SHARE = 0.01;

export function createEwc(numParameters: number, given: EwcOptions = {}, from?: EwcState): Ewc {
  if (!Number.isSafeInteger(numParameters) || numParameters < 1 || numParameters > MAX_PARAMETERS) {
    throw new RuvLLMError('invalid_option', `${numParameters} parameters: from 1 to ${MAX_PARAMETERS}`);
  }
  const options = resolveOptions<Required<EwcOptions>>('createEwc', given, {
    lambda: numberOption(2000, 0, 1e9),
    minLambda: numberOption(100, 0, 1e9),
    maxLambda: numberOption(15_000, 0, 1e9),
    maxTasks: integerOption(10, 1, 1000),
    minSamples: integerOption(100, 1, 1e9),
    decay: numberOption(FISHER_DECAY, 0, 1 - 1e-9),
    floor: numberOption(FISHER_FLOOR, 0, 1e9),
  });
  if (from !== undefined) checkEwcState(from, numParameters);
  let tasks: readonly EwcTask[] = (from?.tasks ?? []).slice(-options.maxTasks).map((task) => ({
    anchor: task.anchor.slice(),
    fisher: task.fisher.slice(),
    lambda: task.lambda,
  }));
  let lambda = from?.lambda ?? options.lambda;
  let fisher: FisherEstimate = createFisherEstimate(numParameters, {
    ...options,
    ...(from === undefined ? {} : { state: from.fisher }),
  });
  const boundary: BoundaryDetector = createBoundaryDetector(numParameters, from?.boundary);

  return {
    numParameters,
    observe(gradient) {
      fisher.observe(gradient);
      return boundary.observeGradient(gradient);
    },
    observeEmbedding: (embedding) => boundary.observeEmbedding(embedding),
    canConsolidate: () => fisher.numSamples >= options.minSamples,
    consolidate(parameters) {
      checkVector('parameters', parameters, numParameters);
      if (fisher.numSamples < options.minSamples) {
        throw new RuvLLMError('conflict', `a task of ${fisher.numSamples} samples, ${options.minSamples} are needed`, {
          data: { numSamples: fisher.numSamples, minSamples: options.minSamples },
        });
      }
      const task = { anchor: parameters.slice(), fisher: fisher.values(), lambda };
      tasks = [...tasks, task].slice(-options.maxTasks);
      fisher = createFisherEstimate(numParameters, options);
      boundary.reset();
    },
    penalty(parameters, strength) {
      checkVector('parameters', parameters, numParameters);
      let total = 0;
      for (const { anchor, fisher, lambda } of tasks) {
        let sum = 0;
        for (let i = 0; i < numParameters; i++) sum += fisher[i]! * (parameters[i]! - anchor[i]!) ** 2;
        total += ((strength ?? lambda) / 2) * sum;
      }
      return total;
    },
    addPenaltyGradient(parameters, gradient, strength) {
      checkVector('parameters', parameters, numParameters);
      checkVector('a gradient', gradient, numParameters);
      for (const { anchor, fisher, lambda } of tasks) {
        const factor = strength ?? lambda;
        for (let i = 0; i < numParameters; i++) gradient[i]! += factor * fisher[i]! * (parameters[i]! - anchor[i]!);
      }
    },
    adaptLambda(lossBefore, lossAfter) {
      if (!Number.isFinite(lossBefore) || !Number.isFinite(lossAfter)) {
        throw new RuvLLMError('invalid_option', `losses of an older task: ${lossBefore} before, ${lossAfter} after`);
      }
      const isWorse = lossAfter > lossBefore + Math.abs(lossBefore) * STABLE_SHARE;
      const next = lambda * (isWorse ? LAMBDA_UP : LAMBDA_DOWN);
      lambda = Math.min(options.maxLambda, Math.max(options.minLambda, next));
      tasks = tasks.map((task) => ({ ...task, lambda }));
      return lambda;
    },
    stats: () => ({ numTasks: tasks.length, numSamples: fisher.numSamples, lambda }),
    state: () => ({
      numParameters,
      lambda,
      tasks: tasks.map((task) => ({ ...task, anchor: task.anchor.slice(), fisher: task.fisher.slice() })),
      fisher: fisher.state(),
      boundary: boundary.state(),
    }),
  };
}

function checkEwcState(state: EwcState, numParameters: number): void {
  if (state.numParameters !== numParameters) {
    throw new RuvLLMError('invalid_option', `a state of ${state.numParameters} parameters, this has ${numParameters}`);
  }
  if (!(state.lambda >= 0 && state.lambda < Infinity)) {
    throw new RuvLLMError('invalid_option', `a state with λ ${state.lambda}`);
  }
  checkVector('the Fisher estimate of a state', state.fisher.sums, numParameters);
  checkVector('the mean gradient of a state', state.boundary.means, numParameters);
  checkVector('the squared gradients of a state', state.boundary.squares, numParameters);
  for (const [i, { anchor, fisher }] of state.tasks.entries()) {
    checkVector(`the parameters of task ${i}`, anchor, numParameters);
    checkVector(`the Fisher information of task ${i}`, fisher, numParameters);
  }
}
