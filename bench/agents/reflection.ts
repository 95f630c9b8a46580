// Valid tool calls of a small model before and after reflection, and the same retries with the text of the error.
import { groupedInterval } from '../support/agents/rank-statistics.ts';
import { inBatches, openSmallModel, type SmallModel } from '../support/agents/small-model.ts';
import { checkCall, isRightCall, TOOL_TASKS, TOOLS, type ToolTask } from '../support/agents/tool-tasks.ts';
import { printTable } from '../support/report.ts';

/** Some minutes on two cores. */
const NUM_TASKS = 24;
const WIDTH = 6;
const MAX_TOKENS = 40;
const MAX_RETRIES = 3;

interface Outcome {
  readonly isFirstValid: boolean;
  readonly isValid: boolean;
  readonly isRight: boolean;
  readonly numAttempts: number;
  readonly ending: string;
}

/** All tasks, with the same seeds in both arms: their first attempts are the same. */
async function run({ model }: SmallModel, tasks: readonly ToolTask[], showsErrors?: boolean): Promise<Outcome[]> {
  return inBatches(tasks, WIDTH, async (task, i) => {
    const answer = await model.generate([...EXAMPLE, { role: 'user', content: task.text }], {
      tools: TOOLS,
      maxTokens: MAX_TOKENS,
      temperature: 0.7,
      seed: 1000 * (i + 1),
      corrections: false,
      // Errors of earlier tasks would help later ones in one arm alone; all attempts are used in both.
      reflection: {
        maxRetries: MAX_RETRIES,
        minGain: 0,
        check: checkCall(task.text),
        ...(showsErrors === undefined ? {} : { showsErrors }),
        patterns: NO_PATTERNS,
      },
    });
    const { attempts, error, ending } = answer.reflection!;
    return {
      isFirstValid: attempts[0]!.error === null,
      isValid: error === null,
      isRight: error === null && isRightCall(answer, task),
      numAttempts: attempts.length,
      ending,
    };
  });
}

/** Without an example, a model of this size writes no call at all: 0 of 48 first attempts. */
const EXAMPLE = [
  { role: 'user', content: 'Will it rain in Madrid?' },
  { role: 'assistant', content: '{"name": "get_weather", "arguments": {"city": "Madrid"}}' },
];

const NO_PATTERNS = { frequent: async () => [], note: async () => {} };

const shareOf = (outcomes: readonly Outcome[], key: 'isFirstValid' | 'isValid' | 'isRight'): number =>
  outcomes.filter((one) => one[key]).length / outcomes.length;

export async function measure(): Promise<Record<string, number>> {
  const small = await openSmallModel();
  try {
    const tasks = TOOL_TASKS.slice(0, NUM_TASKS);
    const reflected = await run(small, tasks);
    const withErrors = await run(small, tasks, true);
    const groups = tasks.map(({ text }) => text);
    const gainOf = (rows: readonly number[]): number =>
      rows.reduce((sum, i) => sum + Number(reflected[i]!.isValid) - Number(reflected[i]!.isFirstValid), 0) /
      rows.length;
    const beyondOf = (rows: readonly number[]): number =>
      rows.reduce((sum, i) => sum + Number(withErrors[i]!.isValid) - Number(reflected[i]!.isValid), 0) / rows.length;
    const [gain, beyond] = [groupedInterval(groups, gainOf), groupedInterval(groups, beyondOf)];
    const all = tasks.map((_, i) => i);
    const attemptsOf = (some: readonly Outcome[]): number => some.reduce((sum, { numAttempts }) => sum + numAttempts, 0) / some.length; // prettier-ignore
    const row = (name: string, some: readonly Outcome[]): string[] => [
      name,
      shareOf(some, 'isFirstValid').toFixed(3),
      shareOf(some, 'isValid').toFixed(3),
      shareOf(some, 'isRight').toFixed(3),
      attemptsOf(some).toFixed(2),
    ];
    printTable([
      [`${tasks.length} requests for a tool`, 'valid at first', 'valid at last', 'right at last', 'attempts'],
      row('by default', reflected),
      row('with the error', withErrors),
    ]);
    return {
      reflection_first_valid: shareOf(reflected, 'isFirstValid'),
      reflection_valid: shareOf(reflected, 'isValid'),
      reflection_with_errors_valid: shareOf(withErrors, 'isValid'),
      reflection_right: shareOf(reflected, 'isRight'),
      reflection_with_errors_right: shareOf(withErrors, 'isRight'),
      reflection_attempts: attemptsOf(reflected),
      reflection_with_errors_attempts: attemptsOf(withErrors),
      reflection_gain_ci_low: gain.low,
      reflection_gain_ci_high: gain.high,
      reflection_error_text_gain: beyondOf(all),
      reflection_error_text_gain_ci_low: beyond.low,
      reflection_error_text_gain_ci_high: beyond.high,
      reflection_gain: gainOf(all),
    };
  } finally {
    await small.close();
  }
}
