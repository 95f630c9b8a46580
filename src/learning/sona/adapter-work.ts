import { createEwc } from '../ewc/ewc.ts';
import { createFisherEstimate } from '../ewc/fisher.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { createSerialQueue } from '../../core/serial-queues.ts';
import { createHeadModel } from '../lora-training/head-model.ts';
import { type ParameterLayout, toFactors } from '../lora-training/parameter-layout.ts';
import { recordLogps } from '../lora-training/token-objective.ts';
import { trainLora } from '../lora-training/train-lora.ts';
import type { Trainable, TrainingModel } from '../lora-training/types.ts';
import { type Delta, mergeDeltas } from '../federation/merge-deltas.ts';
import { orthonormal, removeDirections } from '../micro-lora/token-rows.ts';
import { createObjective, type ObjectiveItem, type ObjectiveSpec } from '../training/objectives.ts';
import { rateShare } from '../training/schedule.ts';
import type { AdapterPlan, LearningWork } from './types.ts';

/** Opens a model for training. */
export type OpenTrainingModel = (plan: AdapterPlan) => Promise<TrainingModel>;

export type AdapterWork = Pick<
  LearningWork,
  'train' | 'cancel' | 'losses' | 'logps' | 'partOf' | 'fisher' | 'layoutSize' | 'factorsOf' | 'mergeDeltas' | 'release'
>;

const PAUSE_EVERY_MS = 20;
/** Fewer squared gradients are mostly noise. */
export const MIN_FISHER_SAMPLES = 8;

/** The work that needs the weights of a model; one model is open and one job runs at a time. */
export function createAdapterWork(open: OpenTrainingModel, now: () => number): AdapterWork {
  let opened: { readonly key: string; readonly model: TrainingModel } | null = null;
  /** The last objective of the open model: it remembers what each of its steps needs. */
  let used: { readonly key: string; readonly model: TrainingModel; readonly objective: Trainable<ObjectiveItem> } | null = null; // prettier-ignore
  /** Layouts of the models opened so far: serving a version needs no weights. */
  const layouts = new Map<string, ParameterLayout>();
  /** Jobs share the arena of the model. */
  const queue = createSerialQueue();
  let running = new AbortController();

  async function modelOf(plan: AdapterPlan): Promise<TrainingModel> {
    if (plan.head !== undefined) return createHeadModel({ ...plan, ...plan.head });
    const key = JSON.stringify(plan);
    if (opened?.key === key) return opened.model;
    await close();
    opened = { key, model: await open(plan) };
    layouts.set(key, opened.model.layout);
    return opened.model;
  }

  async function layoutOf(plan: AdapterPlan): Promise<ParameterLayout> {
    const key = JSON.stringify(plan);
    const cached = layouts.get(key);
    if (cached !== undefined) return cached;
    const isIdle = opened === null;
    const { layout } = await modelOf(plan);
    if (isIdle) await close();
    return layout;
  }

  function objectiveOf(model: TrainingModel, spec: ObjectiveSpec): Trainable<ObjectiveItem> {
    const key = JSON.stringify(spec);
    if (used?.model !== model || used.key !== key) used = { key, model, objective: createObjective(model, spec) };
    return used.objective;
  }

  async function close(): Promise<void> {
    const last = opened;
    opened = null;
    used = null;
    await last?.model.dispose();
  }

  /** Each job has its own signal. */
  const begin = (): AbortSignal => (running = new AbortController()).signal;

  /** Kernels may block the thread: without a pause neither an abort nor a step of loop A would get through. */
  function pauses(signal: AbortSignal): () => Promise<void> {
    let lastMs = now();
    return async () => {
      if (now() - lastMs >= PAUSE_EVERY_MS) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        lastMs = now();
      }
      if (signal.aborted) throw new RuvLLMError('aborted', 'learning was stopped');
    };
  }

  return {
    train: (job) =>
      queue(async () => {
        const model = await modelOf(job.plan);
        const { schedule } = job;
        const {
          parameters,
          state,
          stoppedBy,
          losses: steps,
        } = await trainLora(objectiveOf(model, job.objective ?? { kind: 'sft' }), job.train, {
          parameters: job.parameters,
          state: job.state,
          numEpochs: job.numEpochs,
          learningRate: job.learningRate,
          seed: job.seed,
          timeLimitMs: job.timeLimitMs,
          ...(job.batchSize === undefined ? {} : { batchSize: job.batchSize }),
          maxSteps: job.maxSteps ?? null,
          schedule: schedule === undefined ? null : (numDone) => rateShare(schedule, numDone),
          constrain: createConstraint(model.layout, job.avoid),
          regularizer: job.tasks.length === 0 ? null : createEwc(model.layout.numParameters, job.tasks, job.lambda),
          signal: begin(),
          now,
        });
        return { parameters, state, isDone: stoppedBy === 'end', losses: steps };
      }),
    losses: (plan, examples, parameters, limits) =>
      queue(async () => {
        const model = await modelOf(plan);
        const pause = pauses(begin());
        const startMs = now();
        const isLate = (): boolean => limits !== null && now() - startMs >= limits.timeLimitMs;
        const losses: number[] = [];
        for (const example of examples) {
          if (losses.length >= (limits?.minExamples ?? 0) && isLate()) break;
          await pause();
          losses.push((await model.loss(parameters, example)).loss);
        }
        return { losses, elapsedMs: now() - startMs };
      }),
    logps: (plan, examples, parameters) =>
      queue(async () => {
        const model = await modelOf(plan);
        const pause = pauses(begin());
        const all: Float64Array[] = [];
        for (const example of examples) {
          await pause();
          const logps = new Float64Array(example.tokenIds.length - example.numPromptTokens);
          await model.loss(parameters, example, { objective: recordLogps(logps) });
          all.push(logps);
        }
        return all;
      }),
    partOf: (plan, from, to, share) =>
      queue(async () => {
        if (from !== null) return to.map((value, i) => from[i]! + share * (value - from[i]!));
        // An untrained adapter has B = 0 and any A: only B is scaled.
        const { matrices, rank } = await layoutOf(plan);
        const part = to.slice();
        for (const { bStart, numRows } of matrices) {
          for (let i = bStart; i < bStart + numRows * rank; i++) part[i]! *= share;
        }
        return part;
      }),
    fisher: (plan, examples, parameters, { numSamples, timeLimitMs, ...options }) =>
      queue(async () => {
        const model = await modelOf(plan);
        const pause = pauses(begin());
        const endMs = now() + timeLimitMs;
        const estimate = createFisherEstimate(model.layout.numParameters, options);
        const sampleLabels = createRandom(numSamples);
        for (let i = 0; i < numSamples; i++) {
          if (i >= MIN_FISHER_SAMPLES && now() >= endMs) break;
          await pause();
          const gradient = new Float32Array(model.layout.numParameters);
          await model.addGradient(parameters, { ...examples[i % examples.length]!, weight: 1 }, gradient, {
            sampleLabels,
          });
          estimate.observe(gradient);
        }
        return { values: estimate.values(), numSamples: estimate.numSamples };
      }),
    layoutSize: (plan) => queue(async () => (await layoutOf(plan)).numParameters),
    factorsOf: (plan, parameters) => queue(async () => toFactors(await layoutOf(plan), parameters)),
    mergeDeltas: (plan, own, peers) =>
      queue(async () => {
        const layout = await layoutOf(plan);
        const fit = (delta: Delta): Delta => fitDelta(layout, delta);
        const how = { sites: layout.matrices, rank: layout.rank, pause: pauses(begin()) };
        const { factors, ...merged } = await mergeDeltas(own && fit(own), peers.map(fit), how);
        const parameters = new Float32Array(layout.numParameters);
        for (const [i, { aStart, bStart }] of layout.matrices.entries()) {
          parameters.set(factors[i]!.a, aStart);
          parameters.set(factors[i]!.b.map((value) => value / layout.scale), bStart); // prettier-ignore
        }
        return { ...merged, parameters };
      }),
    async cancel() {
      running.abort();
    },
    release: () => queue(close),
  };
}

/** The matrices of a delta that the layout adapts; throws if one has another size. */
function fitDelta({ matrices }: ParameterLayout, delta: Delta): Delta {
  return delta.filter(({ target, layer, numRows, numCols }) => {
    const own = matrices.find((one) => one.target === target && one.layer === layer);
    if (own === undefined) return false;
    if (own.numRows === numRows && own.numCols === numCols) return true;
    throw new RuvLLMError('invalid_option', `an adapter changes ${target} of layer ${layer} with ${numRows} × ${numCols} values, the model has ${own.numRows} × ${own.numCols}`, { data: { target, layer, numRows, numCols } }); // prettier-ignore
  });
}

/** Keeps the rows of A orthogonal to these hidden states: without it every step in the LM head changes unrelated texts. */
function createConstraint({ matrices, rank }: ParameterLayout, avoid: readonly Float32Array[]) {
  if (avoid.length === 0) return null;
  const { aStart, numCols } = matrices[0]!;
  // A narrow model would have no direction left to learn in.
  const axes = orthonormal(avoid).slice(0, Math.floor(numCols / 4));
  return (parameters: Float32Array): void => {
    for (let row = 0; row < rank; row++) {
      removeDirections(parameters.subarray(aStart + row * numCols, aStart + (row + 1) * numCols), axes);
    }
  };
}
