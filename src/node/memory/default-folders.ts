import { join } from 'node:path';
import { dataFolder } from '../../platform/node/files/paths.ts';

/** Default place of backups. */
export function defaultBackupFolder(): string {
  return join(dataFolder(), 'backups');
}

export function defaultMemoryFolder(): string {
  return join(dataFolder(), 'memory');
}
