import { readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { toFileError } from '../../platform/node/file-errors.ts';
import { didYouMean } from '../nearest.ts';
import { parseJson } from './parse-json.ts';
import { SECTIONS, type Setting, SETTINGS } from './settings.ts';

/** Longer than any settings; beyond it somebody has named the wrong file. */
const MAX_BYTES = 1 << 20;

/** A setting of a file, as the text that its variable would have. */
export interface ConfigEntry {
  readonly setting: Setting;
  readonly text: string;
  readonly line: number;
}

/** The settings of a file by the variable they stand in for. */
export type ConfigEntries = ReadonlyMap<string, ConfigEntry>;

/** Reads a file and checks every value; errors name the line. */
export function readConfig(path: string): ConfigEntries {
  const text = readText(path);
  const parsed = parseJson(text);
  if ('reason' in parsed) throw configError(`${path}:${parsed.line} is not valid JSON: ${parsed.reason}`);
  const { value: all, lines } = parsed;
  const at = (key: string): string => `${path}:${lines.get(key) ?? 1}`;
  const top = objectOf(all, () => `${path} must hold an object`);
  const entries = new Map<string, ConfigEntry>();

  for (const [key, value] of Object.entries(top)) {
    if (key === '$schema') continue;
    const section = SECTIONS.find(({ name }) => name === key);
    if (section === undefined) add(null, key, value);
    else {
      const object = objectOf(value, () => `${at(key)}: ${JSON.stringify(key)} must be an object`);
      for (const [inner, one] of Object.entries(object)) add(key, inner, one);
    }
  }
  return entries;

  function add(section: string | null, key: string, value: unknown): void {
    const keyPath = section === null ? key : `${section}.${key}`;
    const setting = SETTINGS.find(({ path: known }) => known === keyPath);
    if (setting === undefined) throw unknownKey(at(keyPath), section, key);
    const given = setting.kind.toText(value);
    if (given === null) {
      throw configError(`${at(keyPath)}: "${keyPath}" must be ${setting.kind.expected}`, setting.variable);
    }
    const line = lines.get(keyPath) ?? 1;
    entries.set(setting.variable, { setting, text: besideFile(setting, given, path), line });
  }
}

function configError(message: string, option: string | null = null): RuvLLMError {
  const next = 'ruvllm config schema shows what it may hold, ruvllm doctor what else is wrong';
  return new RuvLLMError('invalid_option', message, { data: { next, ...(option === null ? {} : { option }) } });
}

function readText(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) throw configError(`${path} has ${size} bytes; settings have at most ${MAX_BYTES}`);
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path));
  } catch (error) {
    if (error instanceof RuvLLMError) throw error;
    if (error instanceof TypeError) throw configError(`${path} is not valid UTF-8`);
    throw toFileError(error, 'reading the settings', path);
  }
}

function objectOf(value: unknown, complaint: () => string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw configError(complaint());
}

function unknownKey(at: string, section: string | null, key: string): Error {
  const here = SETTINGS.filter((one) => one.section === section).map((one) => one.key);
  const names = section === null ? [...here, ...SECTIONS.flatMap(({ name }) => name ?? [])] : here;
  // One that stands in the wrong place is more likely than one that is spelled almost like another.
  const elsewhere = SETTINGS.find((one) => one.key === key)?.path;
  const hint = elsewhere === undefined ? didYouMean(key, names) : ` (did you mean ${elsewhere}?)`;
  const where = section === null ? '' : ` in "${section}"`;
  return configError(`${at}: unknown setting ${JSON.stringify(key.slice(0, 80))}${where}${hint}`);
}

/** What a path in a file is relative to is the file: who runs the command elsewhere means the same. */
function besideFile({ flag }: Setting, text: string, path: string): string {
  const folder = dirname(path);
  const isPlace = flag.value === 'folder' || flag.value === 'file' || flag.value === 'place';
  if (isPlace) return /^\w{2,}:/.test(text) ? text : resolve(folder, text);
  // A model may be a name of the hub, and only a dot in front says that it is none.
  return flag.value === 'model' || flag.value === 'static|model|MODEL'
    ? text.replace(/^\.\.?[\\/].*$/s, (relative) => resolve(folder, relative))
    : text;
}
