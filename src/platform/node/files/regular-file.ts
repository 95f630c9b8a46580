import { type Stats, statSync } from 'node:fs';
import { RuvLLMError } from '../../../core/errors.ts';
import { toFileError } from './file-errors.ts';

function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'folder';
  if (stat.isFIFO()) return 'pipe';
  return stat.isSocket() ? 'socket' : 'device';
}

/** The size of a file. Throws for a pipe, a device, a socket or a folder, which could keep a reader waiting for ever. */
export function requireRegularFile(path: string, doing = 'cannot open'): number {
  let stat: Stats;
  try {
    stat = statSync(path);
  } catch (error) {
    throw toFileError(error, doing, path);
  }
  if (stat.isFile()) return stat.size;
  const kind = kindOf(stat);
  const advice = kind === 'folder' ? '' : '; write its data to a file first';
  throw new RuvLLMError('io', `${doing} ${path}: not a regular file but a ${kind}${advice}`, { data: { path, kind } });
}
