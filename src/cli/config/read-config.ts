import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { didYouMean } from '../../core/nearest.ts';
import { type ModelPresets, PRESET_SECTIONS, readPresets, resolveModel } from './model-presets.ts';
import type { McpServerConfig } from '../../mcp/server-pool.ts';
import { readMcpServers } from '../../mcp/server-config.ts';
import { parseJson } from './parse-json.ts';
import { SECTIONS, type Setting, SETTINGS } from './settings.ts';
import { requireRegularFile } from '../../platform/node/files/regular-file.ts';

/** A larger file is probably the wrong one. */
const MAX_BYTES = 1 << 20;

/** Reads these MCP servers; throws if a variable that one needs is not set. */
export type LoadMcp = (names: readonly string[]) => readonly McpServerConfig[];

const MCP_KEY = 'mcpServers';
/** Has every variable; a digit is valid as a host and as a port. */
const ANY_VARIABLE = new Proxy<Record<string, string>>({}, { get: () => '1' });

/** A setting of a file, as the text of its environment variable. */
export interface ConfigEntry {
  readonly setting: Setting;
  readonly text: string;
  readonly line: number;
}

/** Settings of a file by environment variable. */
export type ConfigEntries = ReadonlyMap<string, ConfigEntry>;

/** Reads and validates a settings file; errors name the line. */
export function readConfig(
  path: string,
  environment: Readonly<Record<string, string | undefined>> = {},
): {
  readonly entries: ConfigEntries;
  readonly presets: ModelPresets;
  readonly mcpNames: readonly string[];
  readonly readMcp: LoadMcp;
} {
  const parsed = parseJson(readText(path));
  if ('reason' in parsed) throw configError(`${path}:${parsed.line} is not valid JSON: ${parsed.reason}`);
  const { value: root, lines } = parsed;
  const at = (key: string): string => `${path}:${lines.get(key) ?? 1}`;
  const top = objectOf(root, () => `${path} must contain an object`);
  const entries = new Map<string, ConfigEntry>();

  for (const [key, value] of Object.entries(top)) {
    if (key === '$schema' || key === MCP_KEY || Object.hasOwn(PRESET_SECTIONS, key)) continue;
    const section = SECTIONS.find(({ name }) => name === key);
    if (section === undefined) add(null, key, value);
    else {
      const object = objectOf(value, () => `${at(key)}: ${JSON.stringify(key)} must be an object`);
      for (const [innerKey, innerValue] of Object.entries(object)) add(key, innerKey, innerValue);
    }
  }
  const reject = (key: string, message: string): never => {
    throw configError(`${at(key)}: ${message}`);
  };
  const mcpServers = (top as Readonly<Record<string, unknown>>)[MCP_KEY] ?? {};
  const resolveFolder = (folder: string): string => resolve(dirname(path), folder);
  // Checked now, so that an error of the file shows in every command; variables are filled in where servers are used.
  const mcpNames = readMcpServers(mcpServers, { environment: ANY_VARIABLE, reject, resolveFolder }).map(
    ({ name }) => name,
  );
  const readMcp: LoadMcp = (names) => {
    const used = Object.entries(mcpServers).filter(([name]) => names.includes(name));
    return readMcpServers(Object.fromEntries(used), { environment, reject, resolveFolder });
  };
  return { entries, presets: readPresets(top, { file: path, reject }), mcpNames, readMcp };

  function add(section: string | null, key: string, value: unknown): void {
    const keyPath = section === null ? key : `${section}.${key}`;
    const setting = SETTINGS.find((candidate) => candidate.path === keyPath);
    if (setting === undefined) throw unknownKey(at(keyPath), section, key);
    const text = setting.kind.toText(value);
    if (text === null) {
      throw configError(`${at(keyPath)}: "${keyPath}" must be ${setting.kind.expected}`, setting.variable);
    }
    const line = lines.get(keyPath) ?? 1;
    entries.set(setting.variable, { setting, text: resolvePath(setting, text, path), line });
  }
}

function configError(message: string, option: string | null = null): RuvLLMError {
  const next = 'ruvllm config schema shows the format, ruvllm doctor other problems';
  return new RuvLLMError('invalid_option', message, { data: { next, ...(option === null ? {} : { option }) } });
}

function readText(path: string): string {
  try {
    const size = requireRegularFile(path, 'reading the settings');
    if (size > MAX_BYTES) throw configError(`${path} has ${size} bytes; the limit is ${MAX_BYTES}`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    if (error instanceof TypeError) throw configError(`${path} is not valid UTF-8`);
    throw toFileError(error, 'reading the settings', path);
  }
}

function objectOf(value: unknown, describeError: () => string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw configError(describeError());
}

function unknownKey(at: string, section: string | null, key: string): Error {
  const keys = SETTINGS.filter((setting) => setting.section === section).map((setting) => setting.key);
  const sections = [...SECTIONS.flatMap(({ name }) => name ?? []), ...Object.keys(PRESET_SECTIONS), MCP_KEY];
  const names = section === null ? [...keys, ...sections] : keys;
  // A correct key in the wrong section is more likely than a misspelt one.
  const correctPath = SETTINGS.find((setting) => setting.key === key)?.path;
  const hint = correctPath === undefined ? didYouMean(key, names) : ` (did you mean ${correctPath}?)`;
  const where = section === null ? '' : ` in "${section}"`;
  return configError(`${at}: unknown setting ${JSON.stringify(key.slice(0, 80))}${where}${hint}`);
}

/** Resolves paths relative to the settings file, so that they do not depend on the current folder. */
function resolvePath({ flag }: Setting, text: string, path: string): string {
  const folder = dirname(path);
  const isPlace = flag.value === 'folder' || flag.value === 'file' || flag.value === 'place';
  if (isPlace) return /^\w{2,}:/.test(text) ? text : resolve(folder, text);
  return flag.value === 'model' || flag.value === 'static|model|MODEL' ? resolveModel(text, path) : text;
}
