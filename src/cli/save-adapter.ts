import { type Adapter, adapterBytes, describeAdapterFile } from '../adapters/index.ts';
import { RuvLLMError } from '../core/errors.ts';
import { writeGguf } from '../gguf/index.ts';
import { writeWhole } from '../platform/node/files/file-sink.ts';
import type { CommandContext } from './command.ts';
import { formatBytes } from './format.ts';
import { escapeLine } from './safe-text.ts';

export const TYPE_DESCRIPTION = 'number format of the file; default F32';

/** Called before any long work. */
export function checkOutputName(path: string): void {
  if (!/\.gguf$/i.test(path)) throw new RuvLLMError('invalid_option', `${path} must end with .gguf`);
}

/** Writes an adapter file and reports it; `training` goes into its metadata. */
export function saveAdapter(
  { output, values }: CommandContext,
  path: string,
  adapter: Adapter,
  details: object,
  training: string | null = null,
): void {
  const { '--type': type, '--name': name } = values as { '--type'?: 'F32' | 'F16'; '--name'?: string };
  checkOutputName(path);
  const file = describeAdapterFile(adapter, {
    ...(type === undefined ? {} : { type }),
    ...(name === undefined ? {} : { name }),
    ...(training === null ? {} : { training }),
  });
  const sizeBytes = writeWhole(path, (sink) => writeGguf(file, sink));
  const { contentHash, factors } = adapter;
  output.document({ path, contentHash, numMatrices: factors.length, factorBytes: adapterBytes(factors), ...details });
  output.note(
    `wrote ${escapeLine(path)}: ${factors.length} matrices, ${formatBytes(sizeBytes)}, hash ${contentHash.slice(0, 12)}`,
  );
}
