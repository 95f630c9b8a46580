import { statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { configPath } from '../../platform/node/paths.ts';
import type { CliIo } from '../io.ts';

export const CONFIG_NAME = 'ruvllm.config.json';

/** A file that may be there, and why it is looked for. */
export interface ConfigPlace {
  readonly path: string;
  readonly reason: '--config' | 'RUVLLM_CONFIG' | 'this folder' | 'this user';
}

/**
 * Where settings are looked for; the first file that is there holds, and only that. Folders above the current one are not
 * searched: what somebody put into /tmp would change every command below it.
 */
export function configPlaces(named: string | undefined, io: Pick<CliIo, 'environment' | 'folder'>): ConfigPlace[] {
  const folder = io.folder ?? process.cwd();
  if (named !== undefined) return [{ path: resolve(folder, named), reason: '--config' }];
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

/** The file that holds; null: there is none. One that was named must be there. */
export function findConfig(places: readonly ConfigPlace[]): ConfigPlace | null {
  for (const place of places) {
    const stat = statSync(place.path, { throwIfNoEntry: false });
    const isNamed = place.reason === '--config' || place.reason === 'RUVLLM_CONFIG';
    if (stat === undefined) {
      if (!isNamed) continue;
      throw new RuvLLMError('invalid_option', `${place.reason} names ${place.path}, which is not there`, {
        data: { option: place.reason, next: 'ruvllm config path shows where settings are looked for' },
      });
    }
    if (!isNamed) checkOwner(place, stat);
    return place;
  }
  return null;
}

/** A file that was only found decides where requests may come from; strangers must not be able to write it. */
function checkOwner({ path }: ConfigPlace, { uid, mode }: { uid: number; mode: number }): void {
  const self = process.getuid?.();
  if (self === undefined) return; // Windows has no such owners
  const isOthers = uid !== self && uid !== 0;
  if (!isOthers && (mode & 0o002) === 0) return;
  const why = isOthers ? `belongs to the user ${uid}` : 'can be written by every user';
  throw new RuvLLMError('invalid_option', `${path} ${why}; its settings are not used`, {
    data: { path, next: `look at it, then name it: --config ${path}` },
  });
}
