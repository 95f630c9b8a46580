import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { type DataSet, readDataSet } from '../../learning/training/data/data-set.ts';
import type { CommandContext } from '../command.ts';
import { decodeInput, readInput } from '../read-input.ts';
import type { DataSettings } from './training-flags.ts';
import { readRegularFile } from '../../platform/node/files/json-file.ts';

export interface DataFile extends DataSet {
  /** The lines as they are in the file, from line 1. */
  readonly rawLines: readonly string[];
}

/** Reads a data set from a file, or from stdin with `-`. */
export async function readDataFile(path: string, { io }: CommandContext, settings: DataSettings): Promise<DataFile> {
  const text = path === '-' ? await readInput(io.stdin, io.signal) : decodeInput(readRegularFile(path));
  const sha256 = createHash('sha256').update(text).digest('hex');
  const name = path === '-' ? 'stdin' : basename(path);
  return { ...readDataSet(text, { name, sha256, ...settings }), rawLines: text.split('\n') };
}
