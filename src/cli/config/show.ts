import { RuvLLMError } from '../../core/errors.ts';
import { readSystemInfo } from '../../platform/node/system-info.ts';
import { collectOptions } from '../flags.ts';
import type { CliIo } from '../io.ts';
import type { LoadedConfig } from './load-config.ts';
import { SECTIONS, type Setting, SETTINGS } from './settings.ts';

/** A setting as it holds. */
export interface ShownSetting {
  readonly path: string;
  readonly flag: string;
  readonly variable: string;
  /** As it was written, secrets masked; null: not set, and nothing is known before a model is. */
  readonly value: unknown;
  readonly source: 'environment' | 'file' | 'default';
  /** The variable, the file and the line, or `default`. */
  readonly origin: string;
  /** Why the value would be refused. */
  readonly problem: string | null;
}

const MASK = '********';

/** Nobody should see a password because somebody asked where the memory is. */
function mask({ isSecret }: Setting, text: string): string {
  if (isSecret) return MASK;
  return text.replace(/(\/\/)[^@/\s]*@/, `$1${MASK}@`).replace(/([?&](?:password|sslpassword)=)[^&]*/gi, `$1${MASK}`);
}

/** All settings as they hold, of an environment that `withConfig` made. */
export function describeSettings(
  { environment, originOf }: Pick<CliIo, 'environment' | 'originOf'>,
  { found, entries }: LoadedConfig,
): ShownSetting[] {
  const { numCpus } = readSystemInfo();
  const defaults = new Map(SECTIONS.map((section) => [section.name, section.defaults({ numCpus })]));
  return SETTINGS.map((setting) => {
    const { path, flag, variable, section, key } = setting;
    const named = { path, flag: flag.name, variable };
    const text = environment[variable] ?? '';
    if (text === '') {
      const known = defaults.get(section)!;
      const value = known[flag.option ?? key] ?? known[key] ?? null;
      return { ...named, value, source: 'default', origin: 'default', problem: null };
    }
    const isFile = originOf !== undefined && originOf(variable) !== variable;
    return {
      ...named,
      value: mask(setting, text),
      source: isFile ? 'file' : 'environment',
      origin: isFile ? `${found!.path}:${entries.get(variable)!.line}` : variable,
      problem: problemOf(setting, text),
    };
  });
}

function problemOf({ flag, variable, isSecret }: Setting, text: string): string | null {
  try {
    collectOptions([{ option: 'value', ...flag }], {}, { [variable]: text });
    return null;
  } catch (error) {
    if (!(error instanceof RuvLLMError)) throw error;
    return isSecret ? 'not valid' : error.message;
  }
}
