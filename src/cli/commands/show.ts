import { inspectModel, type ModelInspection } from '../../node/engine/inspect-model.ts';
import { estimateMemory } from '../../node/engine/estimate-memory.ts';
import type { ModelInfo } from '../../runtime/model-info.ts';
import type { CommandRunner } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { readModelConfig } from '../load-flags.ts';
import { openHub } from '../open-hub.ts';
import { readSavedDefaults } from '../saved-model.ts';
import { splitRows } from '../summary.ts';

/** Shows the metadata of a model, whether it loads, its memory and its saved defaults, without loading it. */
export const run: CommandRunner = async ({ io, output, args, config }) => {
  const { reference, params, config: loading } = await readSavedDefaults(args[0], config.presets);
  const details = await openHub().showModel(reference!);
  const defaults = { ...loading, ...params };
  const settings = { ...readModelConfig({}, io.environment), ...loading };
  const memory = estimateMemory(details.path, settings);
  const inspection = inspectModel(details.path, settings);
  output.document({ ...details, memory, ...inspection, defaults });
  const { gguf } = details;
  const orUnknown = (value: number | string | null): string => (value === null ? 'unknown' : String(value));
  const rows: [string, string][] = [
    ['model', gguf.displayName],
    ['name', orUnknown(gguf.name)],
    ['architecture', gguf.architecture],
    ['parameters', formatCount(gguf.numParameters)],
    ['quantization', orUnknown(gguf.mainTensorType)],
    ['layers', orUnknown(gguf.numLayers)],
    ['embedding', orUnknown(gguf.embeddingSize)],
    ['context', orUnknown(gguf.contextLength)],
    ['vocabulary', orUnknown(gguf.vocabularySize)],
    ['chat template', gguf.hasChatTemplate ? 'in the file' : 'none'],
    ...Object.entries(defaults).map(([name, value]): [string, string] => [`default ${name}`, JSON.stringify(value)]),
    ['source', details.source],
    ['size', formatBytes(details.sizeBytes)],
    ['loads', inspection.problems.length === 0 ? 'yes' : 'no'],
    ...inspection.problems.map((problem): [string, string] => ['problem', problem]),
    ['memory', memory === null ? 'unknown' : describeMemory(memory)],
    ...splitRows(memory),
    ...describeCosts(inspection),
    ['sha256', details.sha256 ?? 'unknown until the whole file is read'],
    ['path', details.path],
    ...describeFit(inspection),
  ];
  output.details(rows);
};

const describeMemory = ({ totalBytes, weightBytes, kvBytes, activationBytes }: ModelInfo['memory']): string =>
  `${formatBytes(totalBytes)} once loaded: weights ${formatBytes(weightBytes)}, KV pages ${formatBytes(kvBytes)}, activations ${formatBytes(activationBytes)}`;

/** Bits of weights in memory that exceed those in the file by so much are named. */
const NAMED_EXCESS = 1.05;

function describeCosts({ contexts, types, problems }: ModelInspection): [string, string][] {
  if (problems.length > 0) return [];
  const larger = types.filter(({ fileBytes, memoryBytes }) => memoryBytes > fileBytes * NAMED_EXCESS);
  const extra = larger.reduce((sum, { fileBytes, memoryBytes }) => sum + memoryBytes - fileBytes, 0);
  const named = larger.map(
    ({ type, bitsInFile, bitsInMemory }) =>
      `${type} ${bitsInMemory.toFixed(1)} bits instead of ${bitsInFile.toFixed(1)}`,
  );
  const lengths = contexts.map(({ tokens, totalBytes }) => `${formatBytes(totalBytes)} with ${tokens} tokens`);
  return [
    ['at a context', lengths.join(', ')],
    ...(larger.length === 0
      ? []
      : [['unpacked', `${formatBytes(extra)} more than in the file: ${named.join(', ')}`] as [string, string]]),
  ];
}

function describeFit({ problems, fitting, availableBytes }: ModelInspection): [string, string][] {
  if (problems.length > 0) return [];
  const fits =
    fitting === null ? 'no quantization of this model' : `up to ${fitting.name} (${formatBytes(fitting.totalBytes)})`;
  return [['fits', `${fits} in the ${formatBytes(availableBytes)} available`]];
}
