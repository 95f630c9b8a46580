import { importBuilt } from '../../support/dist.ts';
import { createRandom } from '../../support/recall/random.ts';
import { IN_STYLE } from '../../support/learn/style-data.ts';
import { OTHER_QUESTIONS, STYLES, type Style } from './training-styles.ts';

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

/** The point of a trajectory that first reaches the loss, between two evaluations in a straight line. */
function pointAt(trajectory: readonly Point[], onTopic: number): Point {
  const after = trajectory.findIndex((point) => point.onTopic <= onTopic);
  if (after <= 0) return trajectory[Math.max(0, after)]!;
  const [a, b] = [trajectory[after - 1]!, trajectory[after]!];
  const share = (a.onTopic - onTopic) / (a.onTopic - b.onTopic);
  return { onTopic, rises: a.rises.map((rise, i) => rise + share * (b.rises[i]! - rise)) };
}

/**
 * Forgetting of self-distillation divided by that of SFT at the same held-out loss on the topic: the lowest that distillation reaches. The
 * interval resamples styles and texts. Control: a teacher without the correction teaches nothing.
 */
export async function measureForgetting(path: string, isDevelopment: boolean): Promise<Record<string, number>> {
  const trainer = openTrainer(path, { rank: 4, numLayers: 2 });
  const styles = isDevelopment ? STYLES.slice(0, 1) : STYLES;
  const context = { ...trainer, options: OPTIONS };
  const others = await sampleOthers(path, trainer);
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

  async function follow(method: 'sft' | 'distill' | 'control', style: Style): Promise<Point[]> {
    const kind = method === 'control' ? 'distill' : method;
    const train = await METHODS[kind].prepare(context, linesOf(IN_STYLE.slice(0, NUM_TRAINED), style), 'train');
    const heldOut = await METHODS.sft.prepare(context, linesOf(IN_STYLE.slice(NUM_TRAINED), style), 'heldOut');
    const isControl = method === 'control';
    const items = isControl ? train.items.map((item) => ({ ...item, teacher: (item as { student: object }).student })) : train.items; // prettier-ignore
    const trajectory: Point[] = [{ onTopic: meanOf(await heldOut.losses(null)), rises: otherBefore.map(() => 0) }];
    const evaluate = async (parameters: Float32Array): Promise<number> => {
      const onTopic = meanOf(await heldOut.losses(parameters));
      const { losses } = await trainer.work.losses(trainer.plan, others, parameters, null);
      trajectory.push({ onTopic, rises: losses.map((loss, i) => loss - otherBefore[i]!) });
      return onTopic;
    };
    const hooks = { evaluate, save: () => {}, saveEveryMs: Infinity, onStep: () => {}, signal: new AbortController().signal, now: () => 0 }; // prettier-ignore
    const job = { plan: trainer.plan, objective: METHODS[kind].objective(OPTIONS), items: items as never, settings: SETTINGS }; // prettier-ignore
    await runTraining(trainer.work, job, hooks);
    return trajectory;
  }

  const pairs: { readonly distilled: Point; readonly tuned: Point; readonly base: number; readonly control: number }[] = []; // prettier-ignore
  for (const [name, style] of styles) {
    const [sft, distill] = [await follow('sft', style), await follow('distill', style)];
    const best = distill.reduce((lowest, point) => (point.onTopic < lowest.onTopic ? point : lowest));
    const control = pairs.length < 1 ? (await follow('control', style)).at(-1)!.onTopic - sft[0]!.onTopic : 0;
    const tuned = pointAt(sft, best.onTopic);
    pairs.push({ distilled: best, tuned, base: sft[0]!.onTopic, control });
    console.error(`${name}: on topic ${sft[0]!.onTopic.toFixed(3)} → ${best.onTopic.toFixed(3)} (SFT ${tuned.onTopic.toFixed(3)}), forgetting ${meanOf(best.rises).toFixed(4)} and by SFT ${meanOf(tuned.rises).toFixed(4)}; control ${control.toFixed(4)}`); // prettier-ignore
  }
  await trainer.close();

  const ratioOf = (drawn: readonly number[], texts: readonly number[]): number => {
    const total = (of: 'distilled' | 'tuned'): number =>
      meanOf(drawn.map((i) => meanOf(texts.map((k) => pairs[i]![of].rises[k]!))));
    return total('distilled') / total('tuned');
  };
  const all = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const random = createRandom(3);
  const draw = (count: number): number[] => all(count).map(() => random(count));
  const drawn = all(NUM_RESAMPLES)
    .map(() => ratioOf(draw(pairs.length), draw(others.length)))
    .sort((a, b) => a - b);
  return {
    sdft_forgetting_ratio: ratioOf(all(pairs.length), all(others.length)),
    sdft_forgetting_ratio_low: drawn[Math.floor(0.025 * NUM_RESAMPLES)]!,
    sdft_forgetting_ratio_high: drawn[Math.ceil(0.975 * NUM_RESAMPLES) - 1]!,
    sdft_forgetting: meanOf(pairs.map(({ distilled }) => meanOf(distilled.rises))),
    sft_forgetting: meanOf(pairs.map(({ tuned }) => meanOf(tuned.rises))),
    sdft_on_topic_fall: meanOf(pairs.map(({ base, distilled }) => base - distilled.onTopic)),
    sft_on_topic_fall: meanOf(pairs.map(({ base, tuned }) => base - tuned.onTopic)),
    sdft_control_fall: -meanOf(pairs.slice(0, 1).map(({ control }) => control)),
  };
}
