import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { EwcTask } from '../ewc/ewc.ts';
import type { FisherOptions } from '../ewc/fisher.ts';
import type { TrainingState } from '../lora-training/training-state.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { MicroLoraConfig } from '../micro-lora/micro-lora.ts';
import type { MicroLoraState, TokenSample, UpdateReport } from '../micro-lora/types.ts';
import type { ClusterWork } from '../reasoning-bank/k-means.ts';
import type { RerankJob, RerankOutcome } from '../rerank-training/train-rerank.ts';
import type { RouterJob, RouterOutcome } from '../router-training/train-router.ts';

/** What was learned and is in use. Apart, for no cached K or V depends on the second, which changes with every answer. */
export interface Served {
  /** What the loops trained; null: nothing. */
  readonly trained: Adapter | null;
  /** What single answers taught since. */
  readonly instant: Adapter | null;
}

/** A served model, as far as learning needs it. */
export interface LearningModel {
  /** As trajectories name it. */
  readonly id: string;
  /** Its file: a learner reads the weights itself. */
  readonly path: string;
  readonly architecture: string;
  readonly hiddenDim: number;
  readonly vocabSize: number;
  /** Longest example: prompt and answer. */
  readonly maxTokens: number;
  /** What the model would read, the answer as its own; null where the prompt was not kept or is too long. */
  encodeExample(trajectory: Trajectory, answer: string): Promise<Omit<TrainingExample, 'weight'> | null>;
  /** Each token of the answer as the LM head sees it, without what was learned at the head. */
  examine(tenant: string, example: TrainingExample): Promise<readonly TokenSample[]>;
  /** From the next request on; those that run keep what they began with. */
  serve(tenant: string, adapters: Served): Promise<void>;
}

/** What a learning step is asked; nothing of it is changed. */
export interface InstantJob {
  /** Whose: one micro adapter for each. */
  readonly key: string;
  readonly config: MicroLoraConfig;
  /** Where the worker does not know the key. */
  readonly state: MicroLoraState | null;
  readonly samples: readonly TokenSample[];
  readonly quality: number;
  readonly learningRate: number;
}

export interface InstantOutcome {
  readonly isApplied: boolean;
  /** Why not, or what changed. */
  readonly reason: string;
  readonly update: UpdateReport | null;
  /** Mean loss of the answer's tokens, by the verdict: −log p, or −log(1 − p) of a rejected one. */
  readonly lossBefore: number | null;
  readonly lossAfter: number | null;
  /** Null where nothing changed. */
  readonly state: MicroLoraState | null;
  readonly factors: readonly LowRankFactors[];
  /** Of the step itself, without the way to the worker. */
  readonly elapsedMs: number;
}

export interface AdapterPlan {
  readonly path: string;
  readonly rank: number;
  readonly numLayers: number;
  readonly maxTokens: number;
}

export interface TrainJob {
  readonly plan: AdapterPlan;
  readonly train: readonly TrainingExample[];
  /** What serves; null: nothing was learned yet. */
  readonly parameters: Float32Array | null;
  /** Finished tasks that training must not undo, and how strongly they hold. */
  readonly tasks: readonly EwcTask[];
  readonly lambda: number;
  /** A run to go on with. */
  readonly state: TrainingState | null;
  readonly timeLimitMs: number;
  readonly numEpochs: number;
  readonly learningRate: number;
  readonly seed: number;
}

export interface TrainOutcome {
  readonly parameters: Float32Array;
  readonly state: TrainingState;
  readonly isDone: boolean;
  /** Of each step. */
  readonly losses: readonly number[];
}

export interface MeasuredLosses {
  /** Of the first so many examples. */
  readonly losses: readonly number[];
  /** Without what opening the model took. */
  readonly elapsedMs: number;
}

export interface FisherOutcome {
  readonly values: Float32Array;
  /** Gradients it is taken of. */
  readonly numSamples: number;
}

/** What computes, on a thread of its own: a loop never holds up a token, nor the event loop. */
export interface LearningWork {
  instant(job: InstantJob): Promise<InstantOutcome>;
  /** Forgets a micro adapter; the next step begins with what the job brings. */
  forgetInstant(key: string): Promise<void>;
  train(job: TrainJob): Promise<TrainOutcome>;
  /** Ends what runs at its next step; training tells how far it came, the rest is `aborted`. */
  cancel(): Promise<void>;
  /** Losses under these parameters (null: the model as in its file); within limits, of as many examples as fit into the time. */
  losses(
    plan: AdapterPlan,
    examples: readonly TrainingExample[],
    parameters: Float32Array | null,
    limits: { readonly timeLimitMs: number; readonly minExamples: number } | null,
  ): Promise<MeasuredLosses>;
  /** Part of the way from what serves (null: nothing) to what was trained. */
  partOf(plan: AdapterPlan, from: Float32Array | null, to: Float32Array, share: number): Promise<Float32Array>;
  /** How much each parameter matters to these examples; from fewer samples when the time is up. */
  fisher(
    plan: AdapterPlan,
    examples: readonly TrainingExample[],
    parameters: Float32Array,
    limits: FisherOptions & { readonly numSamples: number; readonly timeLimitMs: number },
  ): Promise<FisherOutcome>;
  factorsOf(plan: AdapterPlan, parameters: Float32Array): Promise<readonly LowRankFactors[]>;
  cluster: ClusterWork;
  /** Trains a router and judges it beside the one that serves. */
  trainRouter(job: RouterJob): Promise<RouterOutcome>;
  /** Trains a re-ranking of what is recalled and judges it beside similarity and what serves. */
  trainReranker(job: RerankJob): Promise<RerankOutcome>;
  /** Gives back the memory of a model; it is loaded again when needed. */
  release(): Promise<void>;
}
