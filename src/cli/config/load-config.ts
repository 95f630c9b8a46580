import { RuvLLMError } from '../../core/errors.ts';
import type { CliIo } from '../io.ts';
import type { ConfigPlace } from './find-config.ts';
import { configPlaces, findConfig } from './find-config.ts';
import type { ModelPresets } from './model-presets.ts';
import type { ConfigEntries, LoadMcp } from './read-config.ts';

const EMPTY: ModelPresets = { models: [], groups: new Map() };
const NO_MCP = { mcpNames: [], readMcp: () => [] };

export interface LoadedConfig {
  readonly places: readonly ConfigPlace[];
  /** The settings file; null if there is none. */
  readonly file: ConfigPlace | null;
  readonly entries: ConfigEntries;
  /** Models of the file. */
  readonly presets: ModelPresets;
  /** Names of the MCP servers of the file. */
  readonly mcpNames: readonly string[];
  readonly readMcp: LoadMcp;
  /** Why the file is not used; only for tolerant commands. */
  readonly error: RuvLLMError | null;
}

/** Finds and reads the settings file. Imports the table of settings only if there is a file. */
export async function loadConfig(
  configFlag: string | undefined,
  io: Pick<CliIo, 'environment' | 'folder'>,
  { isTolerant }: { isTolerant: boolean },
): Promise<LoadedConfig> {
  const places = configPlaces(configFlag, io);
  let file: ConfigPlace | null = null;
  try {
    file = findConfig(places);
    if (file === null) return { places, file, entries: new Map(), presets: EMPTY, ...NO_MCP, error: null };
    const { readConfig } = await import('./read-config.ts');
    return { places, file, ...readConfig(file.path, io.environment), error: null };
  } catch (error) {
    if (!isTolerant || !(error instanceof RuvLLMError)) throw error;
    return { places, file, entries: new Map(), presets: EMPTY, ...NO_MCP, error };
  }
}

/** Fills unset and empty environment variables from the settings file. */
export function withConfig(io: CliIo, { file, entries }: LoadedConfig): CliIo {
  if (file === null) return io;
  const environment: Record<string, string | undefined> = { ...io.environment };
  const origins = new Map<string, string>();
  for (const [variable, { text, setting, line }] of entries) {
    if ((environment[variable] ?? '') !== '') continue;
    environment[variable] = text;
    origins.set(variable, `"${setting.path}" (${file.path}:${line})`);
  }
  return { ...io, environment, originOf: (variable) => origins.get(variable) ?? variable };
}

/** Names the line of the settings file in an error about a variable filled from it. */
export function nameOrigin(error: unknown, io: CliIo): unknown {
  if (!(error instanceof RuvLLMError) || error.code !== 'invalid_option' || io.originOf === undefined) return error;
  const option = error.data['option'];
  if (typeof option !== 'string' || io.originOf(option) === option) return error;
  const message = error.message.replace(option, () => io.originOf!(option));
  return new RuvLLMError(error.code, message, { cause: error, data: error.data });
}
