import { statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { configPath } from '../../platform/node/files/paths.ts';
import type { CliIo } from '../io.ts';

export const CONFIG_NAME = 'ruvllm.config.json';

/** A possible settings file, and why it is considered. */
export interface ConfigPlace {
  readonly path: string;
  readonly reason: '--config' | 'RUVLLM_CONFIG' | 'this folder' | 'this user';
}

/**
 * Possible settings files, in order; only the first existing one is used. Parent folders are not searched: a file in
 * /tmp would affect every command below it.
 */
export function configPlaces(configFlag: string | undefined, io: Pick<CliIo, 'environment' | 'folder'>): ConfigPlace[] {
  const folder = io.folder ?? process.cwd();
  if (configFlag !== undefined) return [{ path: resolve(folder, configFlag), reason: '--config' }];
  const { HOME, USERPROFILE, RUVLLM_CONFIG } = io.environment;
  if (RUVLLM_CONFIG) return [{ path: resolve(folder, RUVLLM_CONFIG), reason: 'RUVLLM_CONFIG' }];
  const places: ConfigPlace[] = [{ path: join(folder, CONFIG_NAME), reason: 'this folder' }];
  const user = configPath({
    environment: io.environment,
    homeFolder: HOME ?? USERPROFILE ?? '',
    system: process.platform,
  });
  if (isAbsolute(user)) places.push({ path: user, reason: 'this user' });
  return places;
}

/** The settings file to use, or null. Throws if an explicitly named file does not exist. */
export function findConfig(places: readonly ConfigPlace[]): ConfigPlace | null {
  for (const place of places) {
    const stat = statSync(place.path, { throwIfNoEntry: false });
    const isNamed = place.reason === '--config' || place.reason === 'RUVLLM_CONFIG';
    if (stat === undefined) {
      if (!isNamed) continue;
      throw new RuvLLMError('invalid_option', `${place.reason}: file ${place.path} not found`, {
        data: { option: place.reason, next: 'ruvllm config path shows where settings files are searched' },
      });
    }
    if (!isNamed) checkOwner(place, stat);
    return place;
  }
  return null;
}

/** A discovered file can change who may send requests, so no other user may write it. */
function checkOwner({ path }: ConfigPlace, { uid, mode }: { uid: number; mode: number }): void {
  const self = process.getuid?.();
  if (self === undefined) return; // Windows has no user ids
  const isForeign = uid !== self && uid !== 0;
  if (!isForeign && (mode & 0o002) === 0) return;
  const reason = isForeign ? `is owned by user ${uid}` : 'is writable by every user';
  throw new RuvLLMError('invalid_option', `${path} ${reason}; its settings are not used`, {
    data: { path, next: `check the file, then name it: --config ${path}` },
  });
}
