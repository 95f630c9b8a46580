import { createKlMeter, type KlResult } from '../../core/kl-meter.ts';
import { type TextModelOptions, textTokens, withTextModel } from './text-model.ts';

/** How two models are compared. */
export interface LogitOptions extends TextModelOptions {
  readonly maxTokens: number;
}

/** Compares the next-token distributions of two files on a text; one is loaded after the other. */
export async function compareOnText(
  sourcePath: string,
  path: string,
  text: string,
  options: LogitOptions,
): Promise<KlResult> {
  return compareTokens(sourcePath, path, textTokens(sourcePath, text, options.maxTokens), options);
}

/** Compares the next-token distributions of two files after each of some tokens. */
export async function compareTokens(
  sourcePath: string,
  path: string,
  tokens: readonly number[],
  options: TextModelOptions,
): Promise<KlResult> {
  const eachLogits = (file: string, onRow: (logits: Float32Array) => void): Promise<void> =>
    withTextModel(file, tokens.length, options, (model) => model.run(tokens, onRow));
  const expected: Float32Array[] = [];
  await eachLogits(sourcePath, (row) => expected.push(row.slice()));
  const meter = createKlMeter();
  let at = 0;
  await eachLogits(path, (row) => meter.add(expected[at++]!, row));
  return meter.result();
}
