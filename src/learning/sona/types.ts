import type { Adapter, LowRankFactors } from '../../adapters/types.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { EwcTask } from '../ewc/ewc.ts';
import type { FisherOptions } from '../ewc/fisher.ts';
import type { TrainingState } from '../lora-training/training-state.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { Delta, MergedDelta } from '../federation/merge-deltas.ts';
import type { MicroLoraConfig, MicroLoraState, TokenSample, UpdateReport } from '../micro-lora/types.ts';
import type { ClusterWork } from '../reasoning-bank/k-means.ts';
import type { RerankJob, RerankOutcome } from '../rerank-training/train-rerank.ts';
import type { LearnedVersion } from '../versions/version-log.ts';
import type { ObjectiveItem, ObjectiveSpec } from '../training/objectives.ts';
import type { Schedule } from '../training/schedule.ts';
import type { RouterJob, RouterOutcome } from '../router-training/train-router.ts';

/** Adapters in use. They are separate because no cached K or V depends on `instant`, which changes with every rating. */
export interface Served {
  /** From loops B and C. */
  readonly trained: Adapter | null;
  /** Steps of loop A since. */
  readonly instant: Adapter | null;
}

/** A served model, as the learning loops use it. */
export interface LearningModel {
  /** Name of the model in trajectories. */
  readonly id: string;
  /** Model file; the learning thread reads the weights itself. */
  readonly path: string;
  readonly architecture: string;
  readonly hiddenDim: number;
  readonly vocabSize: number;
  readonly numParameters: number;
  /** Longest example, prompt and answer together. */
  readonly maxTokens: number;
  /**
   * Encodes prompt and answer as the model would see them; null if the prompt was not kept or is too long. `isCutOff`: the answer does not
   * end there, so no end is learned.
   */
  encodeExample(
    trajectory: Pick<Trajectory, 'query' | 'prompt'>,
    answer: string,
    options?: { readonly isCutOff?: boolean },
  ): Promise<Omit<TrainingExample, 'weight'> | null>;
  /**
   * The answer's first tokens as the LM head sees them, without the instant adapter; `isPlain`: without any learned adapter; `isServed`:
   * with all of them, as requests are answered.
   */
  examine(
    tenant: string,
    example: TrainingExample,
    options?: { readonly isPlain?: boolean; readonly isServed?: boolean; readonly timeoutMs?: number },
  ): Promise<readonly TokenSample[]>;
  /** Takes effect with the next request; running requests keep their adapters. */
  serve(tenant: string, adapters: Served): Promise<void>;
}

/** Input of a step of loop A; it is not modified. */
export interface InstantJob {
  /** Tenant and model: there is one micro adapter for each key. */
  readonly key: string;
  readonly config: MicroLoraConfig;
  /** Used if the worker has no adapter for the key. */
  readonly state: MicroLoraState | null;
  readonly samples: readonly TokenSample[];
  readonly quality: number;
  /** Whether the answer is one that the model gave and a user liked. */
  readonly isPraise: boolean;
  /** Texts of the lesson: a step is not judged by copies of the same lesson. */
  readonly question: string;
  readonly answer: string;
  /** Tokens of texts that have nothing to do with any feedback: a step may hardly change them. */
  readonly probes: readonly TokenSample[];
  /** Praised answers to other questions: a step may not change the tokens of them that the model says by itself, nor tip close decisions. */
  readonly praised: readonly { readonly question: string; readonly samples: readonly TokenSample[] }[];
  readonly learningRate: number;
}

export interface InstantOutcome {
  readonly result: 'learned' | 'refused' | 'already-known' | 'skipped';
  readonly isApplied: boolean;
  /** The change, or why there is none. */
  readonly reason: string;
  readonly update: UpdateReport | null;
  /** Mean over the answer's tokens: −log p, or −log(1 − p) if it was rejected. */
  readonly lossBefore: number | null;
  readonly lossAfter: number | null;
  /** Null if nothing changed. */
  readonly state: MicroLoraState | null;
  readonly factors: readonly LowRankFactors[];
  /** Time of the step, without messages to the worker. */
  readonly elapsedMs: number;
}

export interface AdapterPlan {
  readonly path: string;
  readonly rank: number;
  /** Number of last layers; 0: only the LM head. */
  readonly numLayers: number;
  readonly maxTokens: number;
  /** Size of the LM head, required without layers: the hidden states come with the examples. */
  readonly head?: { readonly hiddenDim: number; readonly vocabSize: number };
}

export interface TrainJob<Item = TrainingExample> {
  readonly plan: AdapterPlan;
  /** Default: the loss of the examples. */
  readonly objective?: ObjectiveSpec;
  /** Items of the objective. */
  readonly train: readonly Item[];
  /** Parameters to start from; null: those of an untrained adapter. */
  readonly parameters: Float32Array | null;
  /** Finished tasks, and the strength λ of their penalty. */
  readonly tasks: readonly EwcTask[];
  readonly lambda: number;
  /** Hidden states of unrelated texts, whose logits training leaves as they are; only for the LM head. */
  readonly avoid: readonly Float32Array[];
  /** State of a stopped run to continue. */
  readonly state: TrainingState | null;
  readonly timeLimitMs: number;
  readonly numEpochs: number;
  readonly learningRate: number;
  readonly seed: number;
  /** Examples per step; default 4. */
  readonly batchSize?: number;
  /** Default: no limit but the epochs. */
  readonly maxSteps?: number;
  /** Default: a constant learning rate. */
  readonly schedule?: Schedule;
}

export interface TrainOutcome {
  readonly parameters: Float32Array;
  readonly state: TrainingState;
  readonly isDone: boolean;
  /** One for each step. */
  readonly losses: readonly number[];
}

export interface MeasuredLosses {
  /** Of the first examples, as many as fit into the time. */
  readonly losses: readonly number[];
  /** Without the time to open the model. */
  readonly elapsedMs: number;
}

export interface FisherOutcome {
  readonly values: Float32Array;
  /** Number of gradients in the estimate. */
  readonly numSamples: number;
}

/** Adapters of several nodes as one. */
export interface MergeOutcome extends Omit<MergedDelta, 'factors'> {
  readonly parameters: Float32Array;
}

/** The computations of learning, on a thread of their own: a loop delays neither tokens nor the event loop. */
export interface LearningWork {
  instant(job: InstantJob): Promise<InstantOutcome>;
  /** Drops a micro adapter; the next step starts from the state of its job. */
  forgetInstant(key: string): Promise<void>;
  train(job: TrainJob<ObjectiveItem>): Promise<TrainOutcome>;
  /** Stops running work at its next step: training returns its state, everything else throws `aborted`. */
  cancel(): Promise<void>;
  /** Losses with these parameters (null: the model as in its file), for as many examples as the limits allow. */
  losses(
    plan: AdapterPlan,
    examples: readonly TrainingExample[],
    parameters: Float32Array | null,
    limits: { readonly timeLimitMs: number; readonly minExamples: number } | null,
  ): Promise<MeasuredLosses>;
  /** The log probability of each token of the answers. */
  logps(
    plan: AdapterPlan,
    examples: readonly TrainingExample[],
    parameters: Float32Array | null,
  ): Promise<readonly Float64Array[]>;
  /** Parameters part of the way between two vectors (`from` null: an untrained adapter). */
  partOf(plan: AdapterPlan, from: Float32Array | null, to: Float32Array, share: number): Promise<Float32Array>;
  /** Fisher information of these examples; from fewer samples when the time is up. */
  fisher(
    plan: AdapterPlan,
    examples: readonly TrainingExample[],
    parameters: Float32Array,
    limits: FisherOptions & { readonly numSamples: number; readonly timeLimitMs: number },
  ): Promise<FisherOutcome>;
  /** Number of parameters of an adapter. */
  layoutSize(plan: AdapterPlan): Promise<number>;
  factorsOf(plan: AdapterPlan, parameters: Float32Array): Promise<readonly LowRankFactors[]>;
  /** The robust mean of the adapters of several nodes; matrices that the plan does not adapt are ignored. */
  mergeDeltas(plan: AdapterPlan, own: Delta | null, peers: readonly Delta[]): Promise<MergeOutcome>;
  cluster: ClusterWork;
  /** Trains a router and compares it with the active one. */
  trainRouter(job: RouterJob): Promise<RouterOutcome>;
  /** Trains a re-ranker and compares it with similarity and the active one. */
  trainReranker(job: RerankJob): Promise<RerankOutcome>;
  /** Releases the memory of the open model; it is loaded again when needed. */
  release(): Promise<void>;
}

/**
 * How the instant loop ended for a rated answer. `superseded`: newer feedback of the same user on the same question counts instead;
 * `skipped`: the feedback has nothing for the instant loop, such as a neutral score.
 */
export type InstantResult = 'learned' | 'refused' | 'already-known' | 'superseded' | 'skipped';

/** Change made by one step from a rated answer. */
export interface InstantReport extends Pick<
  InstantOutcome,
  'isApplied' | 'reason' | 'lossBefore' | 'lossAfter' | 'elapsedMs'
> {
  /** `learned` exactly if `isApplied`. */
  readonly outcome: InstantResult;
  /** Earlier requests of the same user whose feedback this one contradicts and replaces. */
  readonly supersedes: readonly string[];
  /** Version that the step was added to, 0: the model file; null: no step was taken. */
  readonly version: number | null;
}

/** The final outcome of the instant loop for one request; a later event for the same request replaces it. */
export interface InstantEvent extends InstantReport {
  readonly tenant: string;
  readonly requestId: string;
  readonly model: string;
}

/** A finished run of loop B or C. */
export interface LastRun {
  readonly loop: LearnedVersion['loop'];
  readonly startMs: number;
  readonly elapsedMs: number;
  readonly reason: string;
  /** Whether the next run continues it. */
  readonly isUnfinished: boolean;
}

export interface RunOptions {
  readonly signal?: AbortSignal;
}

export interface SonaStats {
  readonly numInstant: number;
  readonly numInstantRefused: number;
  readonly numBackground: number;
  readonly numDeep: number;
  readonly numAccepted: number;
  readonly numRefused: number;
}
