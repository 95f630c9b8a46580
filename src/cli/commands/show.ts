import type { CommandRunner } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { openHub } from '../open-hub.ts';
import { readSavedDefaults } from '../saved-model.ts';

/** Shows the metadata of a model, and its saved defaults, without loading it. */
export const run: CommandRunner = async ({ output, args, config }) => {
  const { reference, params, config: loading } = await readSavedDefaults(args[0], config.presets);
  const details = await openHub().showModel(reference!);
  const defaults = { ...loading, ...params };
  output.document({ ...details, defaults });
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
    ['sha256', details.sha256 ?? 'unknown until the whole file is read'],
    ['path', details.path],
  ];
  output.details(rows);
};
