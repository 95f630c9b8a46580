import type { DivergenceKind } from '../lora-training/token-objective.ts';
import type { TrainingExample } from '../lora-training/types.ts';
import type { AdapterPlan, LearningWork } from '../sona/types.ts';
import { answersOf, demonstrationsOf, pairsOf, ratingsOf } from './data/method-lines.ts';
import { promptText } from './data/near-duplicates.ts';
import type { DataLine, PromptText } from './data/records.ts';
import type { Part } from './data/split.ts';
import type { ObjectiveItem, ObjectiveSpec } from './objectives.ts';
import { preferenceLoss, ratingLoss, type ReferenceAnswer } from './preference.ts';
import { teacherPrompt } from './teacher-prompt.ts';

/** Tokens of a prompt and its answer; null if they are too long. */
export type EncodeAnswer = (prompt: PromptText, answer: string) => Promise<Omit<TrainingExample, 'weight'> | null>;

export interface MethodOptions {
  readonly beta: number;
  readonly divergence: DivergenceKind;
}

export interface MethodContext {
  readonly work: Pick<LearningWork, 'losses'>;
  readonly plan: AdapterPlan;
  readonly encode: EncodeAnswer;
  readonly options: MethodOptions;
}

/** A part of the data set as a method sees it. */
export interface PreparedPart {
  readonly items: readonly ObjectiveItem[];
  /** The prompt of each item: items of one prompt are not independent. */
  readonly groups: readonly string[];
  readonly numTooLong: number;
  /** The loss of each item, for validation and the report; null: the model of the file. */
  losses(parameters: Float32Array | null): Promise<readonly number[]>;
}

export interface TrainingMethod {
  /** Lines that it learns from, for errors. */
  readonly needs: string;
  /** The reported loss of an item. */
  readonly measure: string;
  objective(options: MethodOptions): ObjectiveSpec;
  prepare(context: MethodContext, lines: readonly DataLine[], part: Part): Promise<PreparedPart>;
}

/** Encodes texts; `null` marks those that are too long. */
async function encodeAll<T extends { readonly prompt: PromptText }, E>(
  texts: readonly T[],
  encode: (text: T) => Promise<E | null>,
): Promise<{ readonly encoded: readonly E[]; readonly groups: readonly string[]; readonly numTooLong: number }> {
  const encoded: E[] = [];
  const groups: string[] = [];
  for (const text of texts) {
    const one = await encode(text);
    if (one === null) continue;
    encoded.push(one);
    groups.push(promptText(text.prompt));
  }
  return { encoded, groups, numTooLong: texts.length - encoded.length };
}

const lossesOf = async (
  { work, plan }: MethodContext,
  examples: readonly TrainingExample[],
  parameters: Float32Array | null,
): Promise<readonly number[]> =>
  examples.length === 0 ? [] : (await work.losses(plan, examples, parameters, null)).losses;

const numAnswerTokens = ({ tokenIds, numPromptTokens }: TrainingExample): number => tokenIds.length - numPromptTokens;

/** Summed log probabilities of the answers. */
async function totalsOf(
  context: MethodContext,
  examples: readonly TrainingExample[],
  parameters: Float32Array | null,
): Promise<readonly number[]> {
  const losses = await lossesOf(context, examples, parameters);
  return losses.map((loss, i) => -loss * numAnswerTokens(examples[i]!));
}

const sft: TrainingMethod = {
  needs: 'a completion, a correction or a chosen answer',
  measure: 'nats per token of the answer',
  objective: () => ({ kind: 'sft' }),
  async prepare(context, lines) {
    const { encoded, groups, numTooLong } = await encodeAll(answersOf(lines), async ({ prompt, answer, weight }) => {
      const example = await context.encode(prompt, answer);
      return example === null ? null : { ...example, weight };
    });
    return { items: encoded, groups, numTooLong, losses: (parameters) => lossesOf(context, encoded, parameters) };
  },
};

/** The student is judged by the corrections themselves, like SFT: only so are both comparable. */
const distill: TrainingMethod = {
  needs: 'a completion, a correction or a chosen answer',
  measure: 'nats per token of the answer',
  objective: ({ divergence }) => ({ kind: 'distill', divergence }),
  async prepare(context, lines) {
    const { encoded, groups, numTooLong } = await encodeAll(demonstrationsOf(lines), async ({ prompt, answer }) => {
      const student = await context.encode(prompt, answer);
      const teacher = await context.encode(teacherPrompt(prompt, answer), answer);
      return student === null || teacher === null ? null : { student, teacher };
    });
    const students = encoded.map(({ student }) => student);
    return { items: encoded, groups, numTooLong, losses: (parameters) => lossesOf(context, students, parameters) };
  },
};

const dpo: TrainingMethod = {
  needs: 'chosen and rejected answers, a correction of an answer, or answers of one prompt with both thumbs',
  measure: '-log of the probability that the chosen answer is preferred',
  objective: ({ beta }) => ({ kind: 'dpo', beta }),
  async prepare(context, lines) {
    const { encoded, groups, numTooLong } = await encodeAll(pairsOf(lines), async ({ prompt, chosen, rejected }) => {
      const [good, bad] = [await context.encode(prompt, chosen), await context.encode(prompt, rejected)];
      return good === null || bad === null ? null : { good, bad };
    });
    const [good, bad] = [encoded.map((pair) => pair.good), encoded.map((pair) => pair.bad)];
    const [goodLogps, badLogps] = [await totalsOf(context, good, null), await totalsOf(context, bad, null)];
    const items = encoded.map((pair, i) => ({
      chosen: { example: pair.good, referenceLogp: goodLogps[i]! },
      rejected: { example: pair.bad, referenceLogp: badLogps[i]! },
    }));
    return {
      items,
      groups,
      numTooLong,
      async losses(parameters) {
        const [liked, disliked] = [await totalsOf(context, good, parameters), await totalsOf(context, bad, parameters)];
        return liked.map((logp, i) => preferenceLoss(context.options.beta, logp - goodLogps[i]!, disliked[i]! - badLogps[i]!)); // prettier-ignore
      },
    };
  },
};

const kto: TrainingMethod = {
  needs: 'answers with thumbs, corrections, or chosen and rejected answers',
  measure: '1 - the value of the answer',
  objective: ({ beta }) => ({ kind: 'kto', beta }),
  async prepare(context, lines, part) {
    const texts = ratingsOf(lines);
    const { encoded, groups, numTooLong } = await encodeAll(texts, async (text) => {
      const example = await context.encode(text.prompt, text.answer);
      return example === null ? null : { example, text };
    });
    const examples = encoded.map(({ example }) => example);
    const logps = await totalsOf(context, examples, null);
    // The answer of the next item: of another prompt as a rule, and the same in every run.
    const mismatched = await Promise.all(
      encoded.map(async ({ text, example }, i) =>
        part === 'train'
          ? ((await context.encode(text.prompt, encoded[(i + 1) % encoded.length]!.text.answer)) ?? example)
          : example,
      ),
    );
    const mismatchedLogps = part === 'train' ? await totalsOf(context, mismatched, null) : logps;
    const answers = examples.map((example, i): ReferenceAnswer => ({ example, referenceLogp: logps[i]! }));
    const items = answers.map((answer, i) => ({
      ...answer,
      isAccepted: encoded[i]!.text.isAccepted,
      mismatch: { example: mismatched[i]!, referenceLogp: mismatchedLogps[i]! },
    }));
    return {
      items,
      groups,
      numTooLong,
      async losses(parameters) {
        const totals = await totalsOf(context, examples, parameters);
        return totals.map((logp, i) => ratingLoss(context.options.beta, items[i]!.isAccepted, logp - logps[i]!));
      },
    };
  },
};

/** Methods that learn from fixed answers. */
export const METHODS = { sft, distill, dpo, kto } as const satisfies Record<string, TrainingMethod>;
export type MethodName = keyof typeof METHODS;
