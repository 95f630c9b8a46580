import { importBuilt } from '../../support/dist.ts';
import { createRandom } from '../../support/recall/random.ts';
import { IN_STYLE } from '../../support/learn/style-data.ts';
import { createProgress, runHooks } from './training-progress.ts';
import {
  DEVELOPMENT_STYLES,
  HELD_OUT_STYLES,
  OTHER_QUESTIONS,
  type NamedStyle,
  type Style,
} from './training-styles.ts';

const { openTrainer } = await importBuilt<typeof import('../../../src/node/training/open-trainer.ts')>('node/training/open-trainer'); // prettier-ignore
const { METHODS } = await importBuilt<typeof import('../../../src/learning/training/methods.ts')>('learning/training/methods'); // prettier-ignore
const { runTraining } = await importBuilt<typeof import('../../../src/learning/training/training-run.ts')>('learning/training/training-run'); // prettier-ignore
const { readDataLines } = await importBuilt<typeof import('../../../src/learning/training/data/read-lines.ts')>('learning/training/data/read-lines'); // prettier-ignore
const { loadModel } = await importBuilt<typeof import('../../../src/index.ts')>('index');

const SETTINGS = { numEpochs: 4, batchSize: 4, learningRate: 0.001, schedule: 'constant', numWarmupSteps: 0, seed: 1, evaluateEvery: 3, patience: 0 } as const; // prettier-ignore
const OPTIONS = { beta: 0.1, divergence: 'forward' } as const;
/** Questions of a style that are trained; the others are held out. */
const NUM_TRAINED = 20;
const MAX_OTHER_TOKENS = 32;
const NUM_RESAMPLES = 2000;

/** Loss on the topic and rise of the loss of each other text, after some steps. */
interface Point {
  readonly onTopic: number;
  readonly rises: readonly number[];
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Answers that the model of the file samples itself: the rise of their loss estimates its divergence from the trained one. */
async function sampleOthers(path: string, trainer: ReturnType<typeof openTrainer>) {
  const model = await loadModel(path);
  const examples = [];
  for (const [seed, content] of OTHER_QUESTIONS.entries()) {
    const prompt = [{ role: 'user' as const, content }];
    const options = { maxTokens: MAX_OTHER_TOKENS, temperature: 1, topP: 1, topK: 0, minP: 0, seed };
    const { text } = await model.generate(prompt, options);
    const example = await trainer.encode(prompt, text);
    // Without the token that ends an answer: most of these are cut off.
    if (example !== null) examples.push({ ...example, tokenIds: Int32Array.from(example.tokenIds).slice(0, -1) });
  }
  await model.dispose();
  return examples;
}

/** The point of a trajectory that first reaches the loss, between two evaluations in a straight line; the last one if it never does. */
function pointAt(trajectory: readonly Point[], onTopic: number): Point {
  const after = trajectory.findIndex((point) => point.onTopic <= onTopic);
  if (after <= 0) return trajectory.at(after)!;
  const [a, b] = [trajectory[after - 1]!, trajectory[after]!];
  const share = (a.onTopic - onTopic) / (a.onTopic - b.onTopic);
  return { onTopic, rises: a.rises.map((rise, i) => rise + share * (b.rises[i]! - rise)) };
}

/** Both methods where they first have the same loss on the topic. */
interface Pair {
  readonly distilled: Point;
  readonly tuned: Point;
}

/** Forgetting of self-distillation divided by that of SFT; the interval resamples styles and texts. */
function ratioOf(pairs: readonly Pair[]) {
  const numTexts = pairs[0]!.distilled.rises.length;
  const of = (drawn: readonly number[], texts: readonly number[]): number => {
    const total = (method: keyof Pair): number =>
      meanOf(drawn.map((i) => meanOf(texts.map((k) => pairs[i]![method].rises[k]!))));
    return total('distilled') / total('tuned');
  };
  const all = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const random = createRandom(3);
  const draw = (count: number): number[] => all(count).map(() => random(count));
  const drawn = all(NUM_RESAMPLES)
    .map(() => of(draw(pairs.length), draw(numTexts)))
    .sort((a, b) => a - b);
  return {
    ratio: of(all(pairs.length), all(numTexts)),
    low: drawn[Math.floor(0.025 * NUM_RESAMPLES)]!,
    high: drawn[Math.ceil(0.975 * NUM_RESAMPLES) - 1]!,
  };
}

/**
 * Forgetting of self-distillation and of SFT where both have the same held-out loss on the topic: the lowest that distillation reaches, and
 * half of the way there. Control: a teacher without the correction teaches nothing.
 */
export async function measureForgetting(path: string, isDevelopment: boolean): Promise<Record<string, number>> {
  const print = createProgress('forgetting');
  const trainer = openTrainer(path, { rank: 4, numLayers: 2 });
  const context = { ...trainer, options: OPTIONS };
  const others = await sampleOthers(path, trainer);
  print(`${others.length} other texts`);
  const { losses: otherBefore } = await trainer.work.losses(trainer.plan, others, null, null);
  const linesOf = (corrections: typeof IN_STYLE, style: Style) => {
    const line = ([content, answer]: (typeof IN_STYLE)[number]): string =>
      JSON.stringify({
        messages: [
          { role: 'user', content },
          { role: 'assistant', content: style(answer) },
        ],
      });
    return readDataLines(corrections.map(line).join('\n'), 'bench');
  };

  /** Trains until the loss on the topic is as low as `until`. */
  async function follow(method: 'sft' | 'distill' | 'control', [name, style]: NamedStyle, until: number) {
    const kind = method === 'control' ? 'distill' : method;
    const train = await METHODS[kind].prepare(context, linesOf(IN_STYLE.slice(0, NUM_TRAINED), style), 'train');
    const heldOut = await METHODS.sft.prepare(context, linesOf(IN_STYLE.slice(NUM_TRAINED), style), 'heldOut');
    const isControl = method === 'control';
    const items = isControl ? train.items.map((item) => ({ ...item, teacher: (item as { student: object }).student })) : train.items; // prettier-ignore
    const trajectory: Point[] = [{ onTopic: meanOf(await heldOut.losses(null)), rises: otherBefore.map(() => 0) }];
    const reached = new AbortController();
    const evaluate = async (parameters: Float32Array): Promise<number> => {
      const onTopic = meanOf(await heldOut.losses(parameters));
      const { losses } = await trainer.work.losses(trainer.plan, others, parameters, null);
      const rises = losses.map((loss, i) => loss - otherBefore[i]!);
      trajectory.push({ onTopic, rises });
      print(`${name}, ${method}: on topic ${onTopic.toFixed(3)}, forgetting ${meanOf(rises).toFixed(4)}`);
      if (onTopic <= until) reached.abort();
      return onTopic;
    };
    const job = { plan: trainer.plan, objective: METHODS[kind].objective(OPTIONS), items: items as never, settings: SETTINGS }; // prettier-ignore
    try {
      await runTraining(trainer.work, job, runHooks(`${name}, ${method}`, evaluate, reached.signal));
    } catch (error) {
      if (!reached.signal.aborted) throw error;
    }
    return trajectory;
  }

  const best: Pair[] = [];
  const early: Pair[] = [];
  const falls: number[] = [];
  const styles = isDevelopment ? DEVELOPMENT_STYLES : HELD_OUT_STYLES;
  for (const style of styles) {
    const distill = await follow('distill', style, -Infinity);
    const lowest = Math.min(...distill.map(({ onTopic }) => onTopic));
    const sft = await follow('sft', style, lowest);
    const base = distill[0]!.onTopic;
    const pairAt = (onTopic: number): Pair => ({ distilled: pointAt(distill, onTopic), tuned: pointAt(sft, onTopic) });
    best.push(pairAt(lowest));
    early.push(pairAt((base + lowest) / 2));
    falls.push(base - lowest);
    const forgetting = ({ distilled, tuned }: Pair): string => `${meanOf(distilled.rises).toFixed(4)} and by SFT ${meanOf(tuned.rises).toFixed(4)}`; // prettier-ignore
    print(`${style[0]}: on topic ${base.toFixed(3)} → ${lowest.toFixed(3)} (SFT ${best.at(-1)!.tuned.onTopic.toFixed(3)}), forgetting ${forgetting(best.at(-1)!)}; half of the way ${forgetting(early.at(-1)!)}`); // prettier-ignore
  }
  const control = await follow('control', styles[0]!, -Infinity);
  await trainer.close();
  const [atBest, atEarly] = [ratioOf(best), ratioOf(early)];
  return {
    sdft_forgetting_ratio: atBest.ratio,
    sdft_forgetting_ratio_low: atBest.low,
    sdft_forgetting_ratio_high: atBest.high,
    sdft_forgetting_ratio_early: atEarly.ratio,
    sdft_forgetting_ratio_early_low: atEarly.low,
    sdft_forgetting_ratio_early_high: atEarly.high,
    sdft_forgetting: meanOf(best.map(({ distilled }) => meanOf(distilled.rises))),
    sft_forgetting: meanOf(best.map(({ tuned }) => meanOf(tuned.rises))),
    sdft_on_topic_fall: meanOf(falls),
    sft_on_topic_gap: meanOf(best.map(({ distilled, tuned }) => tuned.onTopic - distilled.onTopic)),
    sdft_control_fall: control[0]!.onTopic - control.at(-1)!.onTopic,
    sdft_styles: styles.length,
  };
}
