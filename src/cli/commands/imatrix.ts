import { existsSync } from 'node:fs';
import { RuvLLMError } from '../../core/errors.ts';
import { describeImatrix } from '../../gguf/imatrix/imatrix.ts';
import { writeGguf } from '../../gguf/index.ts';
import { collectImatrix } from '../../node/quantize/collect-imatrix.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags, type Flag } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { openHub } from '../open-hub.ts';
import { readCalibrationText, readRunOptions } from '../quantize-input.ts';
import { escapeLine } from '../safe-text.ts';
import { checkOutputName } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';

const DEFAULT_TOKENS = 20_000;
const DEFAULT_CHUNK = 512;

export const flags: readonly Flag[] = defineFlags({
  '--output <file>': 'file to write, in the GGUF format of llama.cpp; default imatrix.gguf',
  '--tokens <n>': `most tokens of the text to use; default ${DEFAULT_TOKENS}`,
  '--chunk <n>': `tokens per chunk; each starts without context; default ${DEFAULT_CHUNK}`,
  '--force': 'overwrite an existing file',
}).map((flag) => (flag.name === '--output' ? { ...flag, short: '-o' } : flag));

function readCount(values: Readonly<Record<string, unknown>>, name: string, fallback: number, max: number): number {
  const value = (values[name] as number | undefined) ?? fallback;
  if (value >= 2 && value <= max) return value;
  throw usageError(`${name} must be from 2 to ${max}, got ${value}`, name);
}

/** Measures how much the columns of each matrix matter on a text. */
export const run: CommandRunner = async ({ io, output, args, values }) => {
  const [reference, textPath] = args as [string, string];
  const path = (values['--output'] as string | undefined) ?? 'imatrix.gguf';
  checkOutputName(path);
  const maxTokens = readCount(values, '--tokens', DEFAULT_TOKENS, 10_000_000);
  const chunkTokens = readCount(values, '--chunk', DEFAULT_CHUNK, 131_072);
  if (existsSync(path) && values['--force'] !== true) {
    throw new RuvLLMError('invalid_option', `${path} exists; --force overwrites it`);
  }
  const text = readCalibrationText(textPath);
  const modelPath = await openHub().resolveModelPath(reference);
  const progress = output.progress();
  const onProgress = (doneTokens: number, totalTokens: number): void =>
    progress.update({ label: `${doneTokens} of ${totalTokens} tokens`, doneBytes: 0, totalBytes: null });
  const startMs = io.now();
  const { sums, numTokens, numChunks } = await collectImatrix(modelPath, {
    ...readRunOptions(io),
    text,
    chunkTokens,
    maxTokens,
    onProgress,
  }).finally(() => progress.finish());
  const file = describeImatrix(sums, { dataset: textPath, numChunks, chunkTokens });
  const sizeBytes = writeWhole(path, (sink) => writeGguf(file, sink));
  const seconds = (io.now() - startMs) / 1000;
  output.document({ path, sizeBytes, numMatrices: sums.size, numTokens, numChunks, seconds });
  output.lines(
    `wrote ${escapeLine(path)}: ${sums.size} matrices, ${numTokens} tokens in ${numChunks} chunks, ${formatBytes(sizeBytes)}`,
  );
  output.aside(`next: ruvllm quantize ${escapeLine(reference)} OUT.gguf --imatrix ${escapeLine(path)}`);
};
