import { createEwc, type EwcTask } from '../ewc/ewc.ts';
import { createFisherEstimate } from '../ewc/fisher.ts';
import { createRandom } from '../../core/random.ts';
import { toFactors } from '../lora-training/parameter-layout.ts';
import { trainLora } from '../lora-training/train-lora.ts';
import type { TrainingModel } from '../lora-training/types.ts';
import type { AdapterPlan, LearningWork, TrainJob } from './types.ts';

/** Opens a model for training. */
export type OpenTrainingModel = (plan: AdapterPlan) => Promise<TrainingModel>;

export type AdapterWork = Pick<
  LearningWork,
  'train' | 'cancel' | 'shadow' | 'partOf' | 'fisher' | 'factorsOf' | 'release'
>;

/** The loops' part that needs the weights; one model is open at a time, and one thing is done at a time. */
export function createAdapterWork(open: OpenTrainingModel): AdapterWork {
  let opened: { readonly key: string; readonly model: TrainingModel } | null = null;
  let line: Promise<unknown> = Promise.resolve();
  let running = new AbortController();

  async function modelOf(plan: AdapterPlan): Promise<TrainingModel> {
    const key = JSON.stringify(plan);
    if (opened?.key === key) return opened.model;
    await close();
    opened = { key, model: await open(plan) };
    return opened.model;
  }

  async function close(): Promise<void> {
    const last = opened;
    opened = null;
    await last?.model.dispose();
  }

  /** One after the other: the arena is one. */
  function queue<T>(work: () => Promise<T>): Promise<T> {
    const next = line.then(work);
    line = next.catch(() => {});
    return next;
  }

  async function losses(model: TrainingModel, parameters: Float32Array | null, examples: TrainJob['train']) {
    const found: number[] = [];
    for (const example of examples) found.push((await model.loss(parameters, example)).loss);
    return found;
  }

  return {
    train: (job) =>
      queue(async () => {
        const model = await modelOf(job.plan);
        running = new AbortController();
        const {
          parameters,
          state,
          stoppedBy,
          losses: steps,
        } = await trainLora(model, job.train, {
          parameters: job.parameters,
          state: job.state,
          numEpochs: job.numEpochs,
          learningRate: job.learningRate,
          seed: job.seed,
          timeLimitMs: job.timeLimitMs,
          regularizer: job.tasks.length === 0 ? null : regularizerOf(model, job.tasks, job.lambda),
          signal: running.signal,
        });
        return { parameters, state, isDone: stoppedBy === 'end', losses: steps };
      }),
    shadow: (plan, examples, before, after) =>
      queue(async () => {
        const model = await modelOf(plan);
        return { before: await losses(model, before, examples), after: await losses(model, after, examples) };
      }),
    partOf: (plan, from, to, share) =>
      queue(async () => {
        if (from !== null) return to.map((value, i) => from[i]! + share * (value - from[i]!));
        // From nothing: A says where to look, B how much is added.
        const { matrices, rank } = (await modelOf(plan)).layout;
        const part = to.slice();
        for (const { bStart, numRows } of matrices) {
          for (let i = bStart; i < bStart + numRows * rank; i++) part[i]! *= share;
        }
        return part;
      }),
    fisher: (plan, examples, parameters, numSamples) =>
      queue(async () => {
        const model = await modelOf(plan);
        const estimate = createFisherEstimate(model.layout.numParameters);
        const sampleLabels = createRandom(numSamples);
        for (let i = 0; i < numSamples; i++) {
          const gradient = new Float32Array(model.layout.numParameters);
          await model.addGradient(parameters, { ...examples[i % examples.length]!, weight: 1 }, gradient, {
            sampleLabels,
          });
          estimate.observe(gradient);
        }
        return estimate.values();
      }),
    factorsOf: (plan, parameters) => queue(async () => toFactors((await modelOf(plan)).layout, parameters)),
    async cancel() {
      running.abort();
    },
    release: () => queue(close),
  };
}

function regularizerOf(model: TrainingModel, tasks: readonly EwcTask[], lambda: number) {
  const { numParameters } = model.layout;
  const fresh = createEwc(numParameters, {}).state();
  return createEwc(numParameters, { lambda }, { ...fresh, lambda, tasks });
}
