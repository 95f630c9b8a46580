import { RuvLLMError } from '../../core/errors.ts';
import { readSystemInfo } from '../../platform/node/process/system-info.ts';
import { collectOptions } from '../flags.ts';
import type { CliIo } from '../io.ts';
import type { LoadedConfig } from './load-config.ts';
import { SECTIONS, type Setting, SETTINGS } from './settings.ts';

export interface EffectiveSetting {
  readonly path: string;
  readonly flag: string;
  readonly variable: string;
  /** With secrets masked; null if unset and the default depends on a model. */
  readonly value: unknown;
  readonly source: 'environment' | 'file' | 'default';
  /** The variable, file and line, or `default`. */
  readonly origin: string;
  /** Why the value is invalid. */
  readonly problem: string | null;
}

const MASK = '********';

/** Masks secrets and passwords in URLs. */
function mask({ isSecret }: Setting, text: string): string {
  if (isSecret) return MASK;
  return text.replace(/(\/\/)[^@/\s]*@/, `$1${MASK}@`).replace(/([?&](?:password|sslpassword)=)[^&]*/gi, `$1${MASK}`);
}

/** Effective settings of an environment from `withConfig`. */
export function describeSettings(
  { environment, originOf }: Pick<CliIo, 'environment' | 'originOf'>,
  { file, entries }: LoadedConfig,
): EffectiveSetting[] {
  const { numCpus } = readSystemInfo();
  const defaults = new Map(SECTIONS.map((section) => [section.name, section.defaults({ numCpus })]));
  return SETTINGS.map((setting) => {
    const { path, flag, variable, section, key } = setting;
    const names = { path, flag: flag.name, variable };
    const text = environment[variable] ?? '';
    if (text === '') {
      const sectionDefaults = defaults.get(section)!;
      const value = sectionDefaults[flag.option ?? key] ?? sectionDefaults[key] ?? null;
      return { ...names, value, source: 'default', origin: 'default', problem: null };
    }
    const isFromFile = originOf !== undefined && originOf(variable) !== variable;
    return {
      ...names,
      value: mask(setting, text),
      source: isFromFile ? 'file' : 'environment',
      origin: isFromFile ? `${file!.path}:${entries.get(variable)!.line}` : variable,
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
    return isSecret ? 'invalid' : error.message;
  }
}
