import type { CommandRunner } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { openHub } from '../open-hub.ts';

/** Shows the metadata of a model without loading it. */
export const run: CommandRunner = async ({ output, args }) => {
  const details = await openHub().showModel(args[0]!);
  output.document(details);
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
    ['source', details.source],
    ['size', formatBytes(details.sizeBytes)],
    ['sha256', details.sha256 ?? 'unknown until the whole file is read'],
    ['path', details.path],
  ];
  output.details(rows);
};
