import { measureSpeed, median } from '../../runtime/measure-speed.ts';
import { chooseModel } from '../choose-model.ts';
import type { CommandContext } from '../command.ts';
import { formatBytes, formatRate } from '../format.ts';
import { readModelConfig } from '../load-flags.ts';
import { loadWithProgress } from '../load-model.ts';
import { describeModel } from '../summary.ts';
import { requireRange } from '../usage-error.ts';

const DEFAULTS = { '--prompt-tokens': 128, '--tokens': 32, '--runs': 3 } as const;
const MAX_TOKENS = 1 << 20;
const MAX_RUNS = 1000;

const COMPARE = 'npm run bench -- engine';

/** Measures prompt and generation speed of one model on this machine. */
export async function benchSpeed(context: CommandContext): Promise<void> {
  const { io, output, values } = context;
  const count = (name: keyof typeof DEFAULTS, max: number): number =>
    requireRange(name, (values[name] as number | undefined) ?? DEFAULTS[name], 1, max);
  const options = {
    numPromptTokens: count('--prompt-tokens', MAX_TOKENS),
    numTokens: count('--tokens', MAX_TOKENS),
    numRuns: count('--runs', MAX_RUNS),
    signal: io.signal,
  };
  const config = readModelConfig(values, io.environment);
  const chosen = await chooseModel(context, values['--model'] as string | undefined);
  const model = await loadWithProgress(context, chosen.source, config, values);
  try {
    const info = model.modelInfo();
    output.note(describeModel(info));
    const speed = await measureSpeed(model, options);
    const residentBytes = process.memoryUsage.rss();
    output.document({
      topic: 'speed',
      model: { reference: chosen.reference, ...info },
      ...speed,
      residentBytes,
      compare: COMPARE,
    });
    const rate = (values: readonly number[]): string =>
      `${formatRate(median(values))} tokens/s (${formatRate(Math.min(...values))} to ${formatRate(Math.max(...values))})`;
    const rows = [
      ['prompt', `${speed.numPromptTokens} tokens`, rate(speed.promptTokensPerSecond)],
      ['generate', `${speed.numTokens} tokens`, rate(speed.tokensPerSecond)],
      ['memory', formatBytes(info.memory.totalBytes), `${formatBytes(residentBytes)} resident in total`],
    ];
    output.table(null, rows);
    output.note(`to compare with other engines, run in the repository: ${COMPARE}`);
  } finally {
    await model.dispose();
  }
}
