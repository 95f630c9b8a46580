import { z } from 'zod';
import { createRandom } from '../../core/random.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { boundedFigure, type Figure, meanOf, pairedGain } from '../../learning/evaluation/retrieval.ts';
import { isHeldOut } from '../../learning/sona/examples.ts';
import type { LearningModel } from '../../learning/sona/types.ts';
import { text } from '../../memory/schemas/primitives.ts';
import { openNodeLearning } from '../../node/learning/open-learning.ts';
import { openTransientMemory } from '../../node/memory/transient-memory.ts';
import type { Learning } from '../../runtime/learning/learning.ts';
import type { Model } from '../../runtime/model.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { loadWithProgress } from '../load-model.ts';
import { MAX_TEXT, readBenchData, requireRows } from './read-data.ts';
import { collectFacts, noteFacts, readSeed, showFigure } from './run-facts.ts';

const line = text(MAX_TEXT, 1);
const lesson = z.strictObject({
  question: line,
  correction: line,
  /** Other ways to ask, which are only evaluated. */
  paraphrases: z.array(line).max(100).default([]),
});
type Lesson = z.infer<typeof lesson>;

const MODEL_NAME = 'bench';
/** Tenants learn separately. */
const ARMS = { taught: 'taught', shuffled: 'shuffled' } as const;
/** An answer to correct; its text does not matter. */
const MAX_ANSWER_TOKENS = 8;
const MIN_LESSONS = 5;
/** Without paraphrases one lesson of so many is never taught. */
const HELD_OUT_EVERY = 5;

const isFifth = (i: number): boolean => i % HELD_OUT_EVERY === HELD_OUT_EVERY - 1;

/** A question that is only evaluated. */
interface HeldOutQuestion {
  readonly question: string;
  readonly correction: string;
  /** Questions of one lesson are not independent. */
  readonly group: string;
}

/** By held-out question. */
interface Scores {
  /** Mean −log p of the tokens of the right answer. */
  readonly losses: readonly number[];
  /** Share of those tokens that are the model's first choice. */
  readonly accuracies: readonly number[];
}

export function splitLessons(lessons: readonly Lesson[]): { taught: Lesson[]; heldOut: HeldOutQuestion[] } {
  const heldOut = lessons.flatMap(({ paraphrases, correction, question }) =>
    paraphrases.map((paraphrase) => ({ question: paraphrase, correction, group: question })),
  );
  if (heldOut.length > 0) return { taught: [...lessons], heldOut };
  return {
    taught: lessons.filter((_, i) => !isFifth(i)),
    heldOut: lessons.filter((_, i) => isFifth(i)).map(({ question, correction }) => ({ question, correction, group: question })), // prettier-ignore
  };
}

/** Gives each question the correction of another one: a cycle in random order leaves none at its place. */
export function shuffleCorrections(lessons: readonly Lesson[], seed: number): Lesson[] {
  const random = createRandom(seed);
  const order = lessons.map((_, i) => i);
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  const shuffled = [...lessons];
  order.forEach((from, i) => {
    const to = order[(i + 1) % order.length]!;
    shuffled[to] = { ...lessons[to]!, correction: lessons[from]!.correction };
  });
  return shuffled;
}

/** Measures what the instant and the background loop change on held-out questions, in a transient memory. */
export async function benchLearning(context: CommandContext): Promise<void> {
  const { io, output, values } = context;
  const data = await readBenchData(context, 'learning', lesson as z.ZodType<Lesson>);
  requireRows(data.rows.length, MIN_LESSONS, 'lessons');
  const facts = collectFacts(context, 'learning', data);
  const { taught, heldOut } = splitLessons(data.rows);
  const chosen = await chooseModel(context, values['--model'] as string | undefined);
  const memory = await openTransientMemory(null, (message) => output.note(message));
  const report = (message: string): void => output.note(message);
  // Recalled corrections would hide what the weights learned.
  const opened = openNodeLearning({ memory, report, corrections: false });
  let pupil: LearningModel | null = null;
  const learning: Learning = {
    ...opened,
    attach(model) {
      pupil = model;
      return opened.attach(model);
    },
  };
  let model: Model | null = null;
  try {
    model = await loadWithProgress(context, chosen.source, { memory, learning, modelName: MODEL_NAME }, values);
    const score = (tenant: string): Promise<Scores> => scoreAll(pupil!, heldOut, tenant, io.signal);
    const before = await score(ARMS.taught);
    const stages: Stage[] = [{ name: 'before', scores: before }];
    const loops: Record<string, unknown> = {};
    for (const [arm, tenant] of Object.entries(ARMS)) {
      const lessons = arm === 'taught' ? taught : shuffleCorrections(taught, readSeed(context));
      const prefix = arm === 'taught' ? 'after' : 'shuffled control, after';
      const outcomes = await teach({ model, learning }, tenant, lessons, context);
      stages.push({ name: `${prefix} loop A`, scores: await score(tenant) });
      const { version, reason, numTrained } = await learning.sona.backgroundConsolidate(tenant, MODEL_NAME, { signal: io.signal }); // prettier-ignore
      stages.push({ name: `${prefix} loops A and B`, scores: await score(tenant) });
      loops[arm] = { instant: outcomes, background: { isAccepted: version?.isAccepted ?? false, reason, numTrained } };
    }
    const rows = stages.map((stage) => compare(stage, before, heldOut));
    // A control that improves as much learned the form of the answers, not their content.
    const beyondControl = [1, 2].map((i) => ({ ...compare(stages[i]!, stages[i + 2]!.scores, heldOut), name: `${stages[i]!.name}, minus control` })); // prettier-ignore
    output.document({ ...facts, baseline: 'the model before learning', model: chosen.reference, numTaught: taught.length, numHeldOut: heldOut.length, loops, stages: rows, beyondControl }); // prettier-ignore
    output.table(
      ['STAGE', 'LOSS', 'CHANGE [95 %]', 'TOKEN ACCURACY [95 %]', 'CHANGE [95 %]'],
      [...rows, ...beyondControl].map(({ name, loss, lossChange, accuracy, accuracyChange }) => [
        name,
        loss.toFixed(3),
        lossChange === null ? '' : showFigure(lossChange),
        showFigure(accuracy),
        accuracyChange === null ? '' : showFigure(accuracyChange),
      ]),
    );
    for (const [arm, { instant, background }] of Object.entries(loops) as [string, LoopReport][]) {
      const counts = Object.entries(instant).map(([state, count]) => `${count} ${state}`);
      output.note(`${arm}: loop A ${counts.join(', ')}; loop B ${background.isAccepted ? 'accepted' : 'not accepted'}: ${background.reason}`); // prettier-ignore
    }
    output.note(`${taught.length} lessons taught, ${heldOut.length} held-out questions; your memory was not opened`);
    noteFacts(context, facts);
  } finally {
    await model?.dispose();
    await learning.close();
    await memory.close();
  }
}

/**
 * The background loop holds requests out by their ids: random ones would give each run and each arm another split, and few lessons
 * often too few held-out ones. Here it is every fifth lesson.
 */
export function makeRequestIds(count: number, seed: number): string[] {
  const random = createRandom(seed);
  const digits = (length: number): string =>
    Array.from({ length }, () => Math.floor(random.next() * 16).toString(16)).join('');
  return Array.from({ length: count }, (_, i) => {
    for (;;) {
      const id = `${digits(8)}-${digits(4)}-4${digits(3)}-8${digits(3)}-${digits(12)}`;
      if (isHeldOut(id) === isFifth(i)) return id;
    }
  });
}

interface Stage {
  readonly name: string;
  readonly scores: Scores;
}

interface LoopReport {
  readonly instant: Readonly<Record<string, number>>;
  readonly background: { readonly isAccepted: boolean; readonly reason: string };
}

interface StageRow {
  readonly name: string;
  readonly loss: number;
  readonly accuracy: Figure;
  /** Against the model before learning; null: it is that. */
  readonly lossChange: Figure | null;
  readonly accuracyChange: Figure | null;
}

function compare({ name, scores }: Stage, before: Scores, heldOut: readonly HeldOutQuestion[]): StageRow {
  const groups = heldOut.map(({ group }) => group);
  const change = (from: readonly number[], to: readonly number[]): Figure | null => scores === before ? null : pairedGain(from, to, groups); // prettier-ignore
  return {
    name,
    loss: meanOf(scores.losses),
    accuracy: boundedFigure(scores.accuracies),
    lossChange: change(before.losses, scores.losses),
    accuracyChange: change(before.accuracies, scores.accuracies),
  };
}

const ask = (question: string) => [{ role: 'user' as const, content: question }];

/** Corrects the answer to each question once; returns how often the instant loop ended in which way. */
async function teach(
  { model, learning }: { readonly model: Model; readonly learning: Learning },
  tenant: string,
  lessons: readonly Lesson[],
  context: CommandContext,
): Promise<Record<string, number>> {
  const { io, output } = context;
  const requestIds = makeRequestIds(lessons.length, readSeed(context));
  const counts: Record<string, number> = {};
  const progress = output.progress();
  try {
    for (const [i, { question, correction }] of lessons.entries()) {
      progress.update({ label: `${tenant}: lesson ${i + 1} of ${lessons.length}`, doneBytes: 0, totalBytes: null });
      const requestId = requestIds[i]!;
      await model.generate(ask(question), { requestId, tenant, maxTokens: MAX_ANSWER_TOKENS, temperature: 0, signal: io.signal }); // prettier-ignore
      const { outcome } = await learning.feedback(tenant, { requestId, correction });
      const { state } = await outcome;
      counts[state] = (counts[state] ?? 0) + 1;
    }
  } finally {
    progress.finish();
  }
  return counts;
}

async function scoreAll(
  pupil: LearningModel,
  heldOut: readonly HeldOutQuestion[],
  tenant: string,
  signal: AbortSignal,
): Promise<Scores> {
  const losses: number[] = [];
  const accuracies: number[] = [];
  for (const { question, correction } of heldOut) {
    signal.throwIfAborted();
    const example = await pupil.encodeExample({ query: question, prompt: ask(question) }, correction);
    if (example === null) {
      throw new RuvLLMError('invalid_option', `${JSON.stringify(question.slice(0, 80))} and its correction have more than ${pupil.maxTokens} tokens`, { data: { option: '--data', maxTokens: pupil.maxTokens } }); // prettier-ignore
    }
    const samples = await pupil.examine(tenant, { ...example, weight: 1 }, { isServed: true });
    losses.push(meanOf(samples.map(({ labelLogit, logSumExp }) => logSumExp! - labelLogit!)));
    accuracies.push(meanOf(samples.map(({ ids, label }) => Number(ids[0] === label))));
  }
  return { losses, accuracies };
}
