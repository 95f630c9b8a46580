import { resolveServerLimits } from '../../server/limits.ts';
import { resolveGenerateOptions } from '../../runtime/generate-options.ts';
import { resolveModelConfig } from '../../runtime/model-config.ts';
import { CHAT_SETTING_FLAGS } from '../commands/run-flags.ts';
import { BATCH_FLAGS, LIMIT_FLAGS, SERVE_DEFAULTS, SERVE_SETTING_FLAGS } from '../commands/serve-flags.ts';
import type { Flag } from '../flags.ts';
import { GENERATE_FLAGS } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { EMBEDDER_FLAG, PROJECTION_FLAG } from '../memory/embedder-flag.ts';
import { COMMON_FLAGS } from './common-flags.ts';
import { kindOf, type ValueKind } from './value-kinds.ts';

/** An option of the settings file, derived from its flag. */
export interface Setting {
  /** `load.context`. */
  readonly path: string;
  /** null for the top level. */
  readonly section: string | null;
  readonly key: string;
  readonly flag: Flag;
  readonly variable: string;
  readonly kind: ValueKind;
  readonly isSecret: boolean;
}

export interface Section {
  /** null for the top level. */
  readonly name: string | null;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** Defaults by library option or key, as far as they do not depend on a model. */
  defaults(machine: { readonly numCpus: number }): Readonly<Record<string, unknown>>;
}

/** The table behind validation, schema and `config show`. */
export const SECTIONS: readonly Section[] = [
  {
    name: null,
    description: 'Settings of ruvllm. Flags and environment variables take precedence.',
    flags: [...COMMON_FLAGS, EMBEDDER_FLAG, PROJECTION_FLAG],
    defaults: () => ({ memoryEmbedder: 'encoder' }),
  },
  {
    name: 'load',
    description: 'Loading of models.',
    flags: LOAD_FLAGS,
    defaults: (machine) => ({ ...resolveModelConfig({}, machine) }),
  },
  {
    name: 'generate',
    description: 'Generation by run and chat; requests to a server have their own options.',
    flags: GENERATE_FLAGS.filter(({ variable }) => variable !== undefined),
    defaults() {
      const { params, ...call } = resolveGenerateOptions({});
      return { ...call, ...params, stop: [], logitBias: [] };
    },
  },
  { name: 'chat', description: 'Only for chat.', flags: CHAT_SETTING_FLAGS, defaults: () => ({ history: false }) },
  {
    name: 'serve',
    description: 'Only for serve.',
    flags: [...SERVE_SETTING_FLAGS, ...LIMIT_FLAGS, ...BATCH_FLAGS],
    defaults: (machine) => ({ ...resolveModelConfig({}, machine), ...SERVE_DEFAULTS, ...resolveServerLimits() }),
  },
];

/** `prefixCache` for `--no-prefix-cache`. */
export function keyOf({ name }: Flag): string {
  return name.replace(/^--(?:no-)?/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** All settings, in the order of the sections. */
export const SETTINGS: readonly Setting[] = SECTIONS.flatMap(({ name: section, flags }) =>
  flags.map((flag) => {
    const key = keyOf(flag);
    return {
      path: section === null ? key : `${section}.${key}`,
      section,
      key,
      flag,
      variable: flag.variable!,
      kind: kindOf(flag),
      isSecret: flag.isSecret === true,
    };
  }),
);
