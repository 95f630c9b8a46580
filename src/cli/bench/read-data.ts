import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { parseWith } from '../../memory/schemas/primitives.ts';
import type { CommandContext } from '../command.ts';
import { readBatches } from '../memory/transfer.ts';
import { PACKAGE_FOLDER } from '../../platform/node/files/package-folder.ts';

/** Longest text of a data file, in characters. */
export const MAX_TEXT = 1 << 16;
const MAX_ROWS = 1 << 16;

/** Rows of a data file and its identity, so that a result can be repeated. */
export interface BenchData<T> {
  /** The path, or `bundled`. */
  readonly name: string;
  readonly sha256: string;
  readonly rows: readonly T[];
}

/** The small set of a topic that comes with the package. */
export const bundledPath = (topic: string): string => fileURLToPath(new URL(`datasets/${topic}.jsonl`, PACKAGE_FOLDER));

/** Reads --data or the bundled set of a topic; errors name the line. */
export async function readBenchData<T>(
  context: CommandContext,
  topic: string,
  schema: z.ZodType<T>,
): Promise<BenchData<T>> {
  const flag = context.values['--data'] as string | undefined;
  const hash = createHash('sha256');
  const rows: T[] = [];
  const path = flag ?? bundledPath(topic);
  for await (const { lines, records } of readBatches(path === '-' ? undefined : path, context)) {
    for (const [i, record] of records.entries()) {
      hash.update(`${JSON.stringify(record)}\n`);
      rows.push(parseWith<T>(schema as never, record, `line ${lines[i]!}`));
    }
    if (rows.length > MAX_ROWS) throw tooMany(path, rows.length);
  }
  if (rows.length === 0) throw new RuvLLMError('invalid_option', `${path} has no rows`, { data: { option: '--data' } });
  return { name: flag ?? 'bundled', sha256: hash.digest('hex'), rows };
}

function tooMany(path: string, numRows: number): RuvLLMError {
  return new RuvLLMError('invalid_option', `${path} has at least ${numRows} rows; the maximum is ${MAX_ROWS}`, {
    data: { option: '--data', numRows, maxRows: MAX_ROWS },
  });
}

/** Too little data for a figure with an interval. */
export function requireRows(numRows: number, min: number, kind: string): void {
  if (numRows >= min) return;
  throw new RuvLLMError('invalid_option', `${numRows} ${kind}; at least ${min} are required`, {
    data: { option: '--data', numRows, minRows: min },
  });
}
