import { RuvLLMError } from '../../core/errors.ts';
import type { ImportanceSums } from '../../gguf/imatrix/imatrix.ts';
import type { ObservedInput } from '../../kernels/observed-pack.ts';
import { type TextModelOptions, textTokens, withTextModel } from './text-model.ts';

/** A text that is run through a model in chunks, each as a text of its own. */
export interface CalibrationOptions extends TextModelOptions {
  readonly text: string;
  readonly chunkTokens: number;
  /** Most tokens of the text to use. */
  readonly maxTokens: number;
  readonly onProgress?: (doneTokens: number, totalTokens: number) => void;
}

/** Tokens between two reports. */
const PROGRESS_TOKENS = 32;

/** The size of a run. */
export interface CalibrationRun {
  readonly numTokens: number;
  readonly numChunks: number;
}

/** Runs a text through a model and shows the inputs of its matrices to `onInput`. */
export async function runCalibration(
  path: string,
  options: CalibrationOptions,
  onInput: (input: ObservedInput) => void,
): Promise<CalibrationRun> {
  const { text, chunkTokens, maxTokens, onProgress } = options;
  const tokens = textTokens(path, text, maxTokens);
  const chunks: number[][] = [];
  for (let start = 0; start < tokens.length; start += chunkTokens)
    chunks.push(tokens.slice(start, start + chunkTokens));
  let doneTokens = 0;
  const onRow = (): void => {
    if (++doneTokens % PROGRESS_TOKENS === 0) onProgress?.(doneTokens, tokens.length);
  };
  await withTextModel(
    path,
    Math.min(chunkTokens, tokens.length),
    options,
    async (model) => {
      for (const chunk of chunks) await model.run(chunk, onRow);
    },
    onInput,
  );
  return { numTokens: tokens.length, numChunks: chunks.length };
}

/** Sums the squares of the inputs of each matrix over a text; `onInput` sees the inputs, too. */
export async function collectImatrix(
  path: string,
  options: CalibrationOptions,
  onInput: (input: ObservedInput) => void = () => {},
): Promise<CalibrationRun & { readonly sums: ReadonlyMap<string, ImportanceSums> }> {
  const sums = new Map<string, ImportanceSums>();
  const run = await runCalibration(path, options, (input) => {
    addSquares(sums, input);
    onInput(input);
  });
  return { ...run, sums };
}

function addSquares(
  entries: Map<string, ImportanceSums>,
  { weights, rows, numCols, numMatrices, matrix }: ObservedInput,
): void {
  for (const name of new Set(weights.map((weight) => weight.name))) {
    let entry = entries.get(name);
    if (entry === undefined) {
      entry = { sums: new Float64Array(numCols * numMatrices), counts: new Float64Array(numMatrices) };
      entries.set(name, entry);
    }
    const { sums, counts } = entry;
    const at = matrix * numCols;
    for (let start = 0; start < rows.length; start += numCols) {
      for (let col = 0; col < numCols; col++) sums[at + col]! += rows[start + col]! ** 2;
    }
    counts[matrix]! += rows.length / numCols;
    if (Number.isFinite(sums[at]!)) continue;
    throw new RuvLLMError('bad_logits', `the inputs of ${name} are not finite: the model cannot be measured`);
  }
}
