import { existsSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { type ImportanceMatrix, readImatrix } from '../../gguf/imatrix/imatrix.ts';
import { type Mix, type MixName, MIXES } from '../../gguf/requantize/mixes.ts';
import type { GptqReport } from '../../node/quantize/gptq-report.ts';
import { quantizeFile, type QuantizeMethod } from '../../node/quantize/quantize-file.ts';
import { isFolder } from '../../node/quantize/runnable-source.ts';
import { openFileSource } from '../../platform/node/files/file-source.ts';
import type { CommandRunner } from '../command.ts';
import { defineFlags, type FlagValues } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { openHub } from '../open-hub.ts';
import { readCalibrationText, readRunOptions } from '../quantize-input.ts';
import { checkOutputName } from '../save-adapter.ts';
import { usageError } from '../usage-error.ts';

const DEFAULT_TOKENS = 256;
const DEFAULT_CALIBRATION_TOKENS = 16_384;

export const flags = defineFlags({
  '--type <name>': `${Object.keys(MIXES).join(', ')}; default Q4_K_M`,
  '--imatrix <file>': 'importance matrix of ruvllm imatrix or llama.cpp: errors of important columns count more',
  '--method <round|awq|gptq>':
    'round (default), awq: scale columns with large inputs first; requires --imatrix, or gptq: round column by column and correct the rest; requires --calibration',
  '--calibration <file>': 'text that --method gptq runs the model on',
  '--calibration-tokens <n>': `most tokens of that text to use; default ${DEFAULT_CALIBRATION_TOKENS}`,
  '--text <file>': 'text on which both files are compared (KL divergence of the next-token distributions)',
  '--tokens <n>': `tokens of the text to compare; default ${DEFAULT_TOKENS}`,
  '--force': 'overwrite an existing file',
});

function readMix(name: string): MixName {
  const mix = name.toUpperCase();
  if (Object.hasOwn(MIXES, mix)) return mix as MixName;
  throw usageError(`--type must be one of ${Object.keys(MIXES).join(', ')}; got "${name}"`, '--type');
}

function readMethod(name: string): QuantizeMethod {
  if (name === 'round' || name === 'awq' || name === 'gptq') return name;
  throw usageError(`--method must be round, awq or gptq; got "${name}"`, '--method');
}

/** Refuses flags that the method does not use, and a method without those that it requires. */
function checkMethod(method: QuantizeMethod, values: FlagValues): void {
  const has = (flag: string): boolean => values[flag] !== undefined;
  if (method === 'awq' && !has('--imatrix')) throw usageError('--method awq requires --imatrix', '--method');
  if (method === 'gptq') {
    if (!has('--calibration')) throw usageError('--method gptq requires --calibration', '--method');
    if (has('--imatrix')) throw usageError('--method gptq measures its own inputs: omit --imatrix', '--imatrix');
    return;
  }
  if (has('--calibration')) throw usageError('--calibration requires --method gptq', '--calibration');
  if (has('--calibration-tokens')) throw usageError('--calibration-tokens requires --method gptq', '--calibration-tokens'); // prettier-ignore
}

/** Refuses a target that is the source, or exists. */
function checkTarget(path: string, sourcePath: string, isForced: boolean): void {
  checkOutputName(path);
  if (!existsSync(path)) return;
  if (realpathSync(path) === realpathSync(sourcePath)) {
    throw new RuvLLMError('invalid_option', `${path} is the source; the new file needs another name`);
  }
  if (!isForced) throw new RuvLLMError('invalid_option', `${path} exists; --force overwrites it`);
}

function readImatrixFile(path: string): ImportanceMatrix {
  const source = openFileSource(path);
  try {
    return readImatrix(source);
  } finally {
    source.close();
  }
}

/** The command as it can be repeated, with the names of files only: it goes into model cards. */
function commandLine(args: readonly string[], values: FlagValues): string {
  const words = args.map((path) => basename(path));
  const names = ['--type', '--imatrix', '--method', '--calibration', '--calibration-tokens', '--text', '--tokens'];
  for (const name of names) {
    const value = values[name];
    if (value !== undefined) words.push(name, basename(String(value)));
  }
  return ['ruvllm quantize', ...words].join(' ');
}

/** The tensors that gptq rounded, and those that it could not, by reason. */
function describeGptq(report: GptqReport | null): [string, string][] {
  if (report === null) return [];
  const { numTokens, numPasses, tensors, others } = report;
  const reasons = new Map<string, string[]>();
  for (const { tensor, reason } of others) reasons.set(reason, [...(reasons.get(reason) ?? []), tensor]);
  return [
    ['gptq', `${tensors.length} tensors, ${numTokens} tokens of calibration, run ${numPasses} times`],
    ...[...reasons].map(([reason, names]): [string, string] => ['not gptq', `${names.join(', ')}: ${reason}`]),
  ];
}

/** Writes a GGUF model with other tensor types. */
export const run: CommandRunner = async ({ io, output, args, values }) => {
  const [reference, path] = args as [string, string];
  const type = readMix((values['--type'] as string | undefined) ?? 'Q4_K_M');
  const textPath = values['--text'] as string | undefined;
  if (values['--tokens'] !== undefined && textPath === undefined)
    throw usageError('--tokens requires --text', '--tokens');
  const imatrixPath = values['--imatrix'] as string | undefined;
  const mix: Mix = MIXES[type];
  const method = readMethod((values['--method'] as string | undefined) ?? 'round');
  checkMethod(method, values);
  if (mix.needsImatrix === true && imatrixPath === undefined && method !== 'gptq') {
    throw usageError(`--type ${type} requires --imatrix: without it, the model is unusable`, '--type');
  }
  const sourcePath = isFolder(reference) ? reference : await openHub().resolveModelPath(reference);
  checkTarget(path, sourcePath, values['--force'] === true);
  const imatrix = imatrixPath === undefined ? null : readImatrixFile(imatrixPath);
  const maxTokens = (values['--tokens'] as number | undefined) ?? DEFAULT_TOKENS;
  const comparison =
    textPath === undefined ? null : { text: readCalibrationText(textPath), maxTokens, ...readRunOptions(io) };
  const calibrationPath = values['--calibration'] as string | undefined;
  const calibration =
    calibrationPath === undefined
      ? null
      : {
          text: readCalibrationText(calibrationPath),
          maxTokens: (values['--calibration-tokens'] as number | undefined) ?? DEFAULT_CALIBRATION_TOKENS,
          ...readRunOptions(io),
        };
  const progress = output.progress();
  const startMs = io.now();
  const result = await quantizeFile({
    sourcePath,
    path,
    type,
    imatrix,
    method,
    calibration,
    comparison,
    onProgress: (update) => progress.update(update),
  }).finally(() => progress.finish());
  const seconds = (io.now() - startMs) / 1000;
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  const command = commandLine(args, values);
  output.document({ source: sourcePath, type, method, command, seconds, peakBytes, ...result });
  const { divergence } = result;
  output.details([
    ['file', path],
    ['size', `${formatBytes(result.sizeBytes)} (${result.bitsPerWeight.toFixed(2)} bits per weight)`],
    ...Object.entries(result.types).map(([name, { numTensors, sizeBytes }]): [string, string] => [
      name,
      `${numTensors} tensors, ${formatBytes(sizeBytes)}`,
    ]),
    ...describeGptq(result.gptq),
    ['sha256', result.sha256],
    ...(divergence === null
      ? []
      : [
          [
            'divergence',
            `${divergence.meanKl.toExponential(2)} nats on average over ${divergence.numTokens} tokens, ` +
              `${(divergence.top1 * 100).toFixed(1)} % equal first choices`,
          ] as [string, string],
        ]),
  ]);
};
