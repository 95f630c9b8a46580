import { RuvLLMError } from '../../core/errors.ts';
import type { CliIo } from '../io.ts';
import type { ConfigPlace } from './find-config.ts';
import { configPlaces, findConfig } from './find-config.ts';
import type { ConfigEntries } from './read-config.ts';

/** The settings that hold, and where they come from. */
export interface LoadedConfig {
  readonly places: readonly ConfigPlace[];
  /** Null: there is no file. */
  readonly found: ConfigPlace | null;
  readonly entries: ConfigEntries;
  /** Why the file is not used; only for commands that go on without it. */
  readonly error: RuvLLMError | null;
}

/** Looks for the file and reads it. The table of settings is only imported where there is one. */
export async function loadConfig(
  named: string | undefined,
  io: Pick<CliIo, 'environment' | 'folder'>,
  { isTolerant }: { isTolerant: boolean },
): Promise<LoadedConfig> {
  const places = configPlaces(named, io);
  let found: ConfigPlace | null = null;
  try {
    found = findConfig(places);
    if (found === null) return { places, found, entries: new Map(), error: null };
    const { readConfig } = await import('./read-config.ts');
    return { places, found, entries: readConfig(found.path), error: null };
  } catch (error) {
    if (!isTolerant || !(error instanceof RuvLLMError)) throw error;
    return { places, found, entries: new Map(), error };
  }
}

/** The environment with the file behind it: what a variable says comes first, one that is set to nothing says nothing. */
export function withConfig(io: CliIo, { found, entries }: LoadedConfig): CliIo {
  if (found === null) return io;
  const environment: Record<string, string | undefined> = { ...io.environment };
  const origins = new Map<string, string>();
  for (const [variable, { text, setting, line }] of entries) {
    if ((environment[variable] ?? '') !== '') continue;
    environment[variable] = text;
    origins.set(variable, `"${setting.path}" (${found.path}:${line})`);
  }
  return { ...io, environment, originOf: (variable) => origins.get(variable) ?? variable };
}

/** An error about a variable that nobody set is about the line of the file that stands in for it. */
export function nameOrigin(error: unknown, io: CliIo): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'invalid_option' || io.originOf === undefined) return error;
  const option = error.data['option'];
  if (typeof option !== 'string' || io.originOf(option) === option) return error;
  const message = error.message.replace(option, () => io.originOf!(option));
  return new RuvLLMError(error.code, message, { cause: error, data: error.data });
}
