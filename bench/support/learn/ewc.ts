import type { Regularizer, TrainingResult } from '../../../src/learning/lora-training/train-lora.ts';
import type { TrainingExample, TrainingModel } from '../../../src/learning/lora-training/types.ts';
import { importBuilt } from '../dist.ts';
import type { LearnModel } from './learn-model.ts';
import { lossesOf, mean, openTraining } from './lora.ts';
import { type Interval, interval } from './statistics.ts';
import { type Topic, TOPICS, writeTopic } from './topic-corpus.ts';

export interface EwcBenchOptions {
  readonly seeds: readonly number[];
  readonly rank: number;
  readonly numLayers: number;
  readonly numTexts: number;
  readonly numHeldOut: number;
  readonly learningRate: number;
  readonly lambda: number;
  /** Steps between two measurements of the losses while B is learned, and their number. */
  readonly stepsPerLook: number;
  readonly numLooks: number;
}

/** Losses on held-out texts of both tasks while B is learned. */
export interface Look {
  readonly a: number;
  readonly b: number;
}

export interface EwcSeedResult {
  readonly seed: number;
  /** Before training, after A, and while B is learned after it, by method. */
  readonly untaught: Look;
  readonly afterA: Look;
  readonly curves: Readonly<Record<EwcMethod, readonly Look[]>>;
  /** Loss of B at which the methods are compared: the best that all reach. */
  readonly equalB: number;
  /** Increase of A's loss there. */
  readonly forgetting: Readonly<Record<EwcMethod, number>>;
}

export type EwcMethod = 'none' | 'ewc' | 'shuffledFisher';

export interface EwcResult {
  readonly seeds: readonly EwcSeedResult[];
  /** Forgetting without EWC divided by forgetting with it, from the means over seeds. */
  readonly ratio: number;
  /** The same for the control, whose Fisher values belong to other parameters. */
  readonly controlRatio: number;
  /** Of the ratios of the seeds, on a logarithmic scale; NaN if a seed forgot nothing. */
  readonly ratios: Interval;
  readonly controlRatios: Interval;
  /** How much less was forgotten, over seeds. */
  readonly saved: Interval;
  /** The same compared with the control. */
  readonly savedOverShuffled: Interval;
}

const MIN_FISHER_SAMPLES = 100;

/** Task A, then task B: the remainder of A at equal loss of B, without EWC, with it, and with shuffled Fisher values. */
export async function measureEwc(model: LearnModel, options: EwcBenchOptions): Promise<EwcResult> {
  const training = await openTraining(model, options);
  const seeds: EwcSeedResult[] = [];
  for (const seed of options.seeds) seeds.push(await measureSeed(model, training, options, seed));
  await training.dispose();
  const forgotten = (method: EwcMethod): number => mean(seeds.map(({ forgetting }) => forgetting[method]));
  const ratiosOf = (method: EwcMethod): Interval => {
    const logs = interval(seeds.map(({ forgetting }) => Math.log(forgetting.none / forgetting[method])));
    return { mean: Math.exp(logs.mean), low: Math.exp(logs.low), high: Math.exp(logs.high) };
  };
  return {
    seeds,
    ratios: ratiosOf('ewc'),
    controlRatios: ratiosOf('shuffledFisher'),
    savedOverShuffled: interval(seeds.map(({ forgetting }) => forgetting.shuffledFisher - forgetting.ewc)),
    ratio: forgotten('none') / forgotten('ewc'),
    controlRatio: forgotten('none') / forgotten('shuffledFisher'),
    saved: interval(seeds.map(({ forgetting }) => forgetting.none - forgetting.ewc)),
  };
}

async function measureSeed(
  model: LearnModel,
  training: TrainingModel,
  { numTexts, numHeldOut, learningRate, lambda, stepsPerLook, numLooks }: EwcBenchOptions,
  seed: number,
): Promise<EwcSeedResult> {
  const { trainLora } = await importBuilt<typeof import('../../../src/learning/lora-training/train-lora.ts')>(
    'learning/lora-training/train-lora',
  );
  const texts = (topic: Topic, part: 'taught' | 'held out', count: number): TrainingExample[] =>
    writeTopic({ topic, part, numTexts: count, seed: seed * 100 }).map((text) => model.encode(text));
  const [a, b] = TOPICS as [Topic, Topic];
  const taught = { a: texts(a, 'taught', numTexts), b: texts(b, 'taught', numTexts) };
  const heldOut = { a: texts(a, 'held out', numHeldOut), b: texts(b, 'held out', numHeldOut) };
  const look = async (parameters: Float32Array | null): Promise<Look> => ({
    a: mean(await lossesOf(training, parameters, heldOut.a)),
    b: mean(await lossesOf(training, parameters, heldOut.b)),
  });
  const untaught = await look(null);
  const { parameters: learnedA } = await trainLora(training, taught.a, { seed, learningRate, numEpochs: 3 });
  const afterA = await look(learnedA);
  const { ewc, shuffledFisher } = await consolidate(training, learnedA, taught.a, seed, lambda);
  const regularizers: Record<EwcMethod, Regularizer | null> = { none: null, ewc, shuffledFisher };
  const curves = {} as Record<EwcMethod, Look[]>;
  for (const method of Object.keys(regularizers) as EwcMethod[]) {
    const curve = [afterA];
    let state = null;
    for (let i = 0; i < numLooks; i++) {
      const run: TrainingResult = await trainLora(training, taught.b, {
        seed,
        learningRate,
        numEpochs: 1000,
        maxSteps: stepsPerLook,
        regularizer: regularizers[method],
        ...(state === null ? { parameters: learnedA } : { state }),
      });
      state = run.state;
      curve.push(await look(run.parameters));
    }
    curves[method] = curve;
  }
  const equalB = Math.max(...Object.values(curves).map((curve) => Math.min(...curve.map((look) => look.b))));
  const forgetting = Object.fromEntries(
    Object.entries(curves).map(([method, curve]) => [method, lossAt(curve, equalB) - afterA.a]),
  ) as Record<EwcMethod, number>;
  return { seed, untaught, afterA, curves, equalB, forgetting };
}

/** Loss of A where a curve first reaches this loss of B, interpolated between two measurements. */
function lossAt(curve: readonly Look[], b: number): number {
  const index = curve.findIndex((look) => look.b <= b);
  const [to, from] = [curve[index]!, curve[index - 1]];
  if (from === undefined) return to.a;
  const share = (from.b - b) / (from.b - to.b);
  return from.a + share * (to.a - from.a);
}

/** The task just learned, with Fisher information from labels drawn by the model; and the same values at other parameters. */
async function consolidate(
  training: TrainingModel,
  parameters: Float32Array,
  texts: readonly TrainingExample[],
  seed: number,
  lambda: number,
): Promise<{ ewc: Regularizer; shuffledFisher: Regularizer }> {
  const { createEwc } = await importBuilt<typeof import('../../../src/learning/ewc/ewc.ts')>('learning/ewc/ewc');
  const { createFisherEstimate } = await importBuilt<typeof import('../../../src/learning/ewc/fisher.ts')>('learning/ewc/fisher'); // prettier-ignore
  const { createRandom } = await importBuilt<typeof import('../../../src/core/random.ts')>('core/random');
  const sampleLabels = createRandom(seed + 7);
  const fisher = createFisherEstimate(parameters.length, { decay: 0.999, floor: 1e-6 });
  const order = Uint32Array.from(parameters, (_, i) => i);
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(sampleLabels.next() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  for (let i = 0; i < MIN_FISHER_SAMPLES; i++) {
    const gradient = new Float32Array(parameters.length);
    await training.addGradient(parameters, texts[i % texts.length]!, gradient, { sampleLabels });
    fisher.observe(gradient);
  }
  const values = fisher.values();
  const holdTo = (some: Float32Array) => createEwc(parameters.length, [{ anchor: parameters, fisher: some }], lambda);
  return { ewc: holdTo(values), shuffledFisher: holdTo(values.map((_, j) => values[order[j]!]!)) };
}
