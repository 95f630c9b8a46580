import type { CommandRunner } from '../command.ts';
import { formatBytes, formatCount } from '../format.ts';
import { openHub } from '../open-hub.ts';

/** Shows what is known of a model without loading it. */
export const show: CommandRunner = async ({ output, args }) => {
  const details = await openHub().showModel(args[0]!);
  output.document(details);
  const { gguf } = details;
  const known = (value: number | string | null): string => (value === null ? 'unknown' : String(value));
  const rows: [string, string][] = [
    ['name', known(gguf.name)],
    ['architecture', gguf.architecture],
    ['parameters', formatCount(gguf.numParameters)],
    ['quantization', known(gguf.mainTensorType)],
    ['layers', known(gguf.numLayers)],
    ['embedding', known(gguf.embeddingSize)],
    ['context', known(gguf.contextLength)],
    ['vocabulary', known(gguf.vocabularySize)],
    ['chat template', gguf.hasChatTemplate ? 'in the file' : 'none'],
    ['source', details.source],
    ['size', formatBytes(details.sizeBytes)],
    ['sha256', details.sha256 ?? 'not known without reading the file'],
    ['path', details.path],
  ];
  output.details(rows);
};
