import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { PARTS, type Part } from '../../learning/training/data/split.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { writeWhole } from '../../platform/node/files/file-sink.ts';
import type { CommandContext } from '../command.ts';
import { escapeLine } from '../safe-text.ts';
import { readDataFile } from './read-data-file.ts';
import { readDataSettings } from './training-flags.ts';

const FILES: Readonly<Record<Part, string>> = {
  train: 'train.jsonl',
  validation: 'validation.jsonl',
  heldOut: 'held-out.jsonl',
};
const PROVENANCE = 'provenance.json';

/** Writes the parts of a data set with the lines as they are in its file. */
export async function writeParts(context: CommandContext, path: string, folder: string): Promise<void> {
  const { output, values } = context;
  const { parts, duplicates, provenance, rawLines } = await readDataFile(path, context, readDataSettings(values));
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw toFileError(error, 'cannot create', folder);
  }
  const existing = [...Object.values(FILES), PROVENANCE].find((file) => existsSync(join(folder, file)));
  if (existing !== undefined) {
    throw new RuvLLMError('conflict', `${join(folder, existing)} exists; choose another folder`);
  }
  const write = (file: string, text: string): void =>
    void writeWhole(join(folder, file), (sink) => sink.write(new TextEncoder().encode(text)));
  for (const part of PARTS) {
    write(
      FILES[part],
      parts[part].map(({ line }) => `${rawLines[line - 1]!.replace(/^\uFEFF/, '').trim()}\n`).join(''),
    );
  }
  const document = { ...provenance, duplicates };
  write(PROVENANCE, `${JSON.stringify(document, null, 2)}\n`);
  output.document(document);
  const { numLines, numDuplicates, numNearDuplicates } = provenance;
  output.note(
    `${numLines} lines, ${numDuplicates} equal and ${numNearDuplicates} similar ones removed: ` +
      `${PARTS.map((part) => `${parts[part].length} in ${FILES[part]}`).join(', ')} of ${escapeLine(folder)}`,
  );
}
