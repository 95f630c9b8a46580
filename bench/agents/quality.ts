// How well the quality that the audit log estimates without a person agrees with a checker of right and wrong.
import type { AuditEntry } from '../../src/memory/schemas/audit.ts';
import { hasRoutingSuite, readAlpaca } from '../support/learn/routing-data.ts';
import { importBuilt } from '../support/dist.ts';
import { printTable } from '../support/report.ts';
import { checkedQuestions, isHeldOut, isRight } from '../support/agents/questions.ts';
import { auc, calibrationError, fitLogistic, groupedInterval, partialSpearman, shuffled, spearman } from '../support/agents/rank-statistics.ts'; // prettier-ignore
import { inBatches, openSmallModel, type SmallModel } from '../support/agents/small-model.ts';

const MAX_TOKENS = 32;
/** Greedy, and as creative as clients set it: the second one is wrong more often for the same question. */
const TEMPERATURES = [0, 1] as const;
const WIDTH = 8;
const PARTS = ['likelihood', 'coherence', 'diversity', 'repetition'] as const;
const NUM_SHUFFLES = 200;
const NUM_INSTRUCTIONS = 60;

/** An answer with its estimate. */
interface Row {
  readonly group: string;
  readonly estimate: NonNullable<AuditEntry['estimate']>;
  readonly meanLogprob: number;
  readonly length: number;
  readonly text: string;
  readonly label: number;
  readonly isHeldOut: boolean;
}

/** Answers questions and reads their estimates from the audit log, as an operator would. */
async function ask(
  { model, memory }: SmallModel,
  prompts: readonly { readonly text: string; readonly temperature: number }[],
  maxTokens: number,
) {
  const answers = await inBatches(prompts, WIDTH, async ({ text, temperature }, i) => {
    const requestId = crypto.randomUUID();
    const options = { requestId, maxTokens, temperature, seed: i + 1, corrections: false };
    const answer = await model.generate([{ role: 'user', content: text }], options);
    return { requestId, answer };
  });
  await new Promise((resolve) => setTimeout(resolve, 100)); // the last entry is enqueued after its answer
  await memory.audit.flush();
  const found = new Map<string, NonNullable<AuditEntry['estimate']>>();
  for (let after: string | undefined; ;) {
    const page = await memory.audit.search('local', { limit: 500, ...(after === undefined ? {} : { after }) });
    for (const { entry } of page.entries) if (entry.estimate !== undefined) found.set(entry.requestId, entry.estimate);
    if (page.next === null) break;
    after = page.next;
  }
  return answers.map(({ requestId, answer }) => ({ answer, estimate: found.get(requestId)! }));
}

async function checkedRows(small: SmallModel): Promise<Row[]> {
  const questions = checkedQuestions();
  const prompts = TEMPERATURES.flatMap((temperature) => questions.map((question) => ({ ...question, temperature })));
  const answers = await ask(small, prompts, MAX_TOKENS);
  return answers.map(({ answer, estimate }, i) => {
    const question = prompts[i]!;
    return {
      group: question.text,
      estimate,
      meanLogprob: answer.meanLogprob ?? 0,
      length: answer.text.length,
      text: answer.text,
      label: isRight(answer.text, question) ? 1 : 0,
      isHeldOut: isHeldOut(question),
    };
  });
}

const partsOf = ({ estimate: { parts } }: Row): number[] => PARTS.map((name) => parts[name] ?? 0.5);

/** Weights of the parts on the training half, for `estimate-quality.ts` and `confidence.ts`. */
function fitted(train: readonly Row[]): string[][] {
  const labels = train.map(({ label }) => label);
  const rows = train.map(partsOf);
  const means = PARTS.map((_, k) => rows.reduce((sum, row) => sum + row[k]!, 0) / rows.length);
  const weights = fitLogistic(
    rows.map((row) => row.map((value, k) => value - means[k]!)),
    labels,
    0.001,
  );
  const platt = fitLogistic(
    train.map(({ meanLogprob }) => [meanLogprob]),
    labels,
    0.0001,
  );
  return [
    ['fitted on the training half', 'weight', 'mean'],
    ...PARTS.map((name, k) => [name, weights[k]!.toFixed(2), means[k]!.toFixed(3)]),
    ['bias', weights[PARTS.length]!.toFixed(2), ''],
    ['confidence: slope, offset', platt[0]!.toFixed(2), platt[1]!.toFixed(2)],
  ];
}

function interval(rows: readonly Row[], statistic: (some: readonly Row[]) => number) {
  return groupedInterval(
    rows.map(({ group }) => group),
    (drawn) => statistic(drawn.map((i) => rows[i]!)),
  );
}

/**
 * The judged instructions have win rates and lengths of four models and none of their answers, so no estimate of these answers can be
 * compared with them. Known are the bias of the judge for long answers, and whether estimates of our own answers are low for
 * instructions that another small model failed.
 */
async function measureJudged(small: SmallModel): Promise<Record<string, number>> {
  if (!hasRoutingSuite()) {
    console.error('no judged instructions: the shared folder is missing');
    return {};
  }
  const rows = readAlpaca();
  // The win rate of the last model is the reference of the others.
  const pairs = rows.flatMap(({ outcomes, lengths }) => outcomes.slice(0, -1).map((win, k) => [win, lengths![k]!] as const)); // prettier-ignore
  const some = rows.filter(({ text }) => text.length < 400).slice(0, NUM_INSTRUCTIONS);
  const answers = await ask(small, some.map(({ text }) => ({ text, temperature: 0 })), 48); // prettier-ignore
  const scores = answers.map(({ estimate }) => estimate.quality);
  const wins = some.map(({ outcomes }) => outcomes[0]!);
  const pick = (values: readonly number[], drawn: readonly number[]): number[] => drawn.map((i) => values[i]!);
  const range = groupedInterval(some.map(({ group }) => group), (drawn) => spearman(pick(scores, drawn), pick(wins, drawn))); // prettier-ignore
  return {
    quality_judged_length_correlation: spearman(pairs.map(([win]) => win), pairs.map(([, length]) => length)), // prettier-ignore
    quality_judged_difficulty_correlation: spearman(scores, wins),
    quality_judged_difficulty_ci_low: range.low,
    quality_judged_difficulty_ci_high: range.high,
  };
}

async function measureCost(small: SmallModel, rows: readonly Row[]): Promise<{ textMs: number; embedMs: number }> {
  const { estimateQuality } = await importBuilt<typeof import('../../src/runtime/quality/estimate-quality.ts')>('runtime/quality/estimate-quality'); // prettier-ignore
  const numRounds = 20;
  let startMs = performance.now();
  for (let round = 0; round < numRounds; round++) {
    for (const { text, meanLogprob } of rows) estimateQuality({ text, meanLogprob, isValid: null });
  }
  const textMs = (performance.now() - startMs) / (numRounds * rows.length);
  startMs = performance.now();
  for (const { text } of rows.slice(0, 100)) await small.memory.embedLater(text);
  return { textMs, embedMs: (performance.now() - startMs) / Math.min(100, rows.length) };
}

/** Agreement on questions that no weight was fitted on. */
export async function measure(): Promise<Record<string, number>> {
  const small = await openSmallModel();
  try {
    const rows = await checkedRows(small);
    const heldOut = rows.filter((row) => row.isHeldOut);
    printTable(fitted(rows.filter((row) => !row.isHeldOut)));
    const scoresOf = (some: readonly Row[]): number[] => some.map(({ estimate }) => estimate.quality);
    const labelsOf = (some: readonly Row[]): number[] => some.map(({ label }) => label);
    const lengths = (some: readonly Row[]): number[] => some.map(({ length }) => length);
    const correlate = (some: readonly Row[]): number => spearman(scoresOf(some), labelsOf(some));
    const range = interval(heldOut, correlate);
    const areaOf = (some: readonly Row[]): number => auc(scoresOf(some), labelsOf(some));
    const areaRange = interval(heldOut, areaOf);
    const controls = Array.from({ length: NUM_SHUFFLES }, (_, seed) => spearman(shuffled(scoresOf(heldOut), seed + 1), labelsOf(heldOut))).sort((a, b) => a - b); // prettier-ignore
    const { confidenceOf } = await importBuilt<typeof import('../../src/runtime/quality/confidence.ts')>('runtime/quality/confidence'); // prettier-ignore
    const confidences = heldOut.map(({ meanLogprob }) => confidenceOf(meanLogprob));
    const cost = await measureCost(small, heldOut);
    const figures: Record<string, number> = {
      quality_share_right: labelsOf(heldOut).reduce((sum, label) => sum + label, 0) / heldOut.length,
      quality_auc: areaOf(heldOut),
      quality_auc_ci_low: areaRange.low,
      quality_auc_ci_high: areaRange.high,
      quality_shuffled_high: controls[Math.ceil(NUM_SHUFFLES * 0.975) - 1]!,
      quality_length_correlation: spearman(lengths(heldOut), labelsOf(heldOut)),
      quality_partial_correlation: partialSpearman(scoresOf(heldOut), labelsOf(heldOut), lengths(heldOut)),
      quality_calibration_error: calibrationError(scoresOf(heldOut), labelsOf(heldOut)),
      confidence_calibration_error: calibrationError(confidences, labelsOf(heldOut)),
      confidence_auc: auc(confidences, labelsOf(heldOut)),
      quality_ms_per_answer: cost.textMs + cost.embedMs,
      quality_text_ms: cost.textMs,
      quality_correlation_ci_low: range.low,
      quality_correlation_ci_high: range.high,
    };
    Object.assign(figures, await measureJudged(small));
    const shown = PARTS.map((name, k) => [name, spearman(heldOut.map((row) => partsOf(row)[k]!), labelsOf(heldOut)).toFixed(3)]); // prettier-ignore
    printTable([
      ['part, held-out questions', 'Spearman'],
      ...shown,
      ['length', figures['quality_length_correlation']!.toFixed(3)],
    ]);
    return { ...figures, quality_correlation: correlate(heldOut) };
  } finally {
    await small.close();
  }
}
