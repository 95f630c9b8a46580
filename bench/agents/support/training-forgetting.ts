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

/** The defaults of `ruvllm train`, with neither a validation part nor a stop. */
const SETTINGS = { numEpochs: 3, batchSize: 4, learningRate: 0.001, schedule: 'constant', numWarmupSteps: 0, seed: 1, evaluateEvery: 1, patience: 0 } as const; // prettier-ignore
const OPTIONS = { beta: 0.1, divergence: 'forward' } as const;
/** Questions of a style that are trained; the others are held out. */
const NUM_TRAINED = 20;
const MAX_OTHER_TOKENS = 32;
const NUM_RESAMPLES = 2000;

/** Loss of each held-out answer on the topic, and rise of the loss of each other text, after some steps. */
interface Point {
  readonly topic: readonly number[];
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

const onTopic = ({ topic }: Point): number => meanOf(topic);

/** The point of a trajectory that first reaches the loss, between two evaluations in a straight line; the last one if it never does. */
function pointAt(trajectory: readonly Point[], loss: number): Point {
  const after = trajectory.findIndex((point) => onTopic(point) <= loss);
  if (after <= 0) return trajectory.at(after)!;
  const [a, b] = [trajectory[after - 1]!, trajectory[after]!];
  const share = (onTopic(a) - loss) / (onTopic(a) - onTopic(b));
  const between = (from: readonly number[], to: readonly number[]): number[] =>
    from.map((value, i) => value + share * (to[i]! - value));
  return { topic: between(a.topic, b.topic), rises: between(a.rises, b.rises) };
}

/** Both methods at the same place of their trajectories, for one style. */
interface Pair {
  readonly distilled: Point;
  readonly tuned: Point;
}

/** A figure of some pairs with its 95 % interval, which resamples styles and texts. */
function withInterval(
  pairs: readonly Pair[],
  part: keyof Point,
  figureOf: (distilled: number, tuned: number) => number,
): { readonly value: number; readonly low: number; readonly high: number } {
  const of = (drawn: readonly number[], texts: readonly number[]): number => {
    const total = (method: keyof Pair): number =>
      meanOf(drawn.map((i) => meanOf(texts.map((k) => pairs[i]![method][part][k]!))));
    return figureOf(total('distilled'), total('tuned'));
  };
  const all = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const numTexts = pairs[0]!.distilled[part].length;
  const random = createRandom(3);
  const draw = (count: number): number[] => all(count).map(() => random(count));
  const drawn = all(NUM_RESAMPLES)
    .map(() => of(draw(pairs.length), draw(numTexts)))
    .sort((a, b) => a - b);
  return {
    value: of(all(pairs.length), all(numTexts)),
    low: drawn[Math.floor(0.025 * NUM_RESAMPLES)]!,
    high: drawn[Math.ceil(0.975 * NUM_RESAMPLES) - 1]!,
  };
}

/**
 * Forgetting of self-distillation and of SFT, in two comparisons. After the same steps, as without a validation part; the losses on the topic
 * are compared, too. And where both first have the same loss on the topic, as if SFT had been stopped by it: the lowest that distillation
 * reaches, and half of the way there. Control: a teacher without the correction teaches nothing.
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

  async function follow(method: 'sft' | 'distill' | 'control', [name, style]: NamedStyle): Promise<Point[]> {
    const kind = method === 'control' ? 'distill' : method;
    const train = await METHODS[kind].prepare(context, linesOf(IN_STYLE.slice(0, NUM_TRAINED), style), 'train');
    const heldOut = await METHODS.sft.prepare(context, linesOf(IN_STYLE.slice(NUM_TRAINED), style), 'heldOut');
    const isControl = method === 'control';
    const items = isControl ? train.items.map((item) => ({ ...item, teacher: (item as { student: object }).student })) : train.items; // prettier-ignore
    const trajectory: Point[] = [{ topic: await heldOut.losses(null), rises: otherBefore.map(() => 0) }];
    const evaluate = async (parameters: Float32Array): Promise<number> => {
      const topic = await heldOut.losses(parameters);
      const { losses } = await trainer.work.losses(trainer.plan, others, parameters, null);
      const rises = losses.map((loss, i) => loss - otherBefore[i]!);
      trajectory.push({ topic, rises });
      print(`${name}, ${method}: on topic ${meanOf(topic).toFixed(3)}, forgetting ${meanOf(rises).toFixed(4)}`);
      return meanOf(topic);
    };
    const job = { plan: trainer.plan, objective: METHODS[kind].objective(OPTIONS), items: items as never, settings: SETTINGS }; // prettier-ignore
    await runTraining(trainer.work, job, runHooks(`${name}, ${method}`, evaluate));
    return trajectory;
  }

  const pairs: { readonly atEnd: Pair; readonly atBest: Pair; readonly early: Pair; readonly fall: number }[] = [];
  const styles = isDevelopment ? DEVELOPMENT_STYLES : HELD_OUT_STYLES;
  for (const style of styles) {
    const [distill, sft] = [await follow('distill', style), await follow('sft', style)];
    const [base, lowest] = [onTopic(distill[0]!), Math.min(...distill.map(onTopic))];
    const pairAt = (loss: number): Pair => ({ distilled: pointAt(distill, loss), tuned: pointAt(sft, loss) });
    const pair = {
      atEnd: { distilled: distill.at(-1)!, tuned: sft.at(-1)! },
      atBest: pairAt(lowest),
      early: pairAt((base + lowest) / 2),
      fall: base - lowest,
    };
    pairs.push(pair);
    const text = ({ distilled, tuned }: Pair): string =>
      [distilled, tuned].map((point) => `${meanOf(point.rises).toFixed(4)} at ${onTopic(point).toFixed(3)}`).join(' and by SFT '); // prettier-ignore
    print(`${style[0]}: forgetting at the end ${text(pair.atEnd)}, at the best ${text(pair.atBest)}, early ${text(pair.early)}`); // prettier-ignore
  }
  const control = await follow('control', styles[0]!);
  await trainer.close();

  const ratio = (distilled: number, tuned: number): number => distilled / tuned;
  const [atEnd, atBest, early] = (['atEnd', 'atBest', 'early'] as const).map((place) =>
    pairs.map((pair) => pair[place]),
  );
  const named = (name: string, { value, low, high }: ReturnType<typeof withInterval>): Record<string, number> => ({
    [name]: value,
    [`${name}_low`]: low,
    [`${name}_high`]: high,
  });
  const forgetting = (method: keyof Pair, some: readonly Pair[]): number => meanOf(some.map((pair) => meanOf(pair[method].rises))); // prettier-ignore
  return {
    ...named('sdft_forgetting_ratio', withInterval(atEnd!, 'rises', ratio)),
    ...named(
      'sdft_topic_gap',
      withInterval(atEnd!, 'topic', (distilled, tuned) => distilled - tuned),
    ),
    sdft_forgetting: forgetting('distilled', atEnd!),
    sft_forgetting: forgetting('tuned', atEnd!),
    ...named('sdft_forgetting_ratio_stopped', withInterval(atBest!, 'rises', ratio)),
    ...named('sdft_forgetting_ratio_early', withInterval(early!, 'rises', ratio)),
    sdft_forgetting_stopped: forgetting('distilled', atBest!),
    sft_forgetting_stopped: forgetting('tuned', atBest!),
    sdft_topic_fall: meanOf(pairs.map(({ fall }) => fall)),
    sdft_control_fall: onTopic(control[0]!) - onTopic(control.at(-1)!),
    sdft_styles: styles.length,
  };
}
