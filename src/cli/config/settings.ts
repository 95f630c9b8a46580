import { resolveServerLimits } from '../../server/limits.ts';
import { resolveGenerateOptions } from '../../runtime/generate-options.ts';
import { resolveModelConfig } from '../../runtime/model-config.ts';
import { CHAT_OWN_FLAGS } from '../commands/run-flags.ts';
import { SERVE_DEFAULTS, SERVE_OWN_FLAGS, LIMIT_FLAGS } from '../commands/serve-flags.ts';
import type { Flag } from '../flags.ts';
import { GENERATE_FLAGS } from '../generate-flags.ts';
import { LOAD_FLAGS } from '../load-flags.ts';
import { EMBEDDER_FLAG } from '../memory/embedder-flag.ts';
import { COMMON_FLAGS } from './common-flags.ts';
import { kindOf, type ValueKind } from './value-kinds.ts';

/** One option that a file may set. Everything about it follows from its flag. */
export interface Setting {
  /** `load.context`. */
  readonly path: string;
  /** Null: at the top of the file. */
  readonly section: string | null;
  readonly key: string;
  readonly flag: Flag;
  readonly variable: string;
  readonly kind: ValueKind;
  readonly isSecret: boolean;
}

export interface Section {
  /** Null: the top of the file. */
  readonly name: string | null;
  readonly description: string;
  readonly flags: readonly Flag[];
  /** What holds where nobody says otherwise, by the flag's option or its key; as far as it is known before a model is. */
  defaults(machine: { readonly numCpus: number }): Readonly<Record<string, unknown>>;
}

/** Where each option stands in a file: the one table that the file's check, its schema and `config show` are made from. */
export const SECTIONS: readonly Section[] = [
  {
    name: null,
    description: 'Settings of ruvllm. Flags and environment variables come first.',
    flags: [...COMMON_FLAGS, EMBEDDER_FLAG],
    defaults: () => ({ memoryEmbedder: 'static' }),
  },
  {
    name: 'load',
    description: 'How models are loaded.',
    flags: LOAD_FLAGS,
    defaults: (machine) => ({ ...resolveModelConfig({}, machine) }),
  },
  {
    name: 'generate',
    description: 'How run and chat make text; requests to a server bring their own.',
    flags: GENERATE_FLAGS.filter(({ variable }) => variable !== undefined),
    defaults() {
      const { params, ...call } = resolveGenerateOptions({});
      return { ...call, ...params, stop: [], logitBias: [] };
    },
  },
  { name: 'chat', description: 'Of chat alone.', flags: CHAT_OWN_FLAGS, defaults: () => ({ history: false }) },
  {
    name: 'serve',
    description: 'Of serve alone.',
    flags: [...SERVE_OWN_FLAGS, ...LIMIT_FLAGS],
    defaults: () => ({ ...SERVE_DEFAULTS, ...resolveServerLimits() }),
  },
];

/** `--no-prefix-cache` is `prefixCache`. */
export function keyOf({ name }: Flag): string {
  return name.replace(/^--(?:no-)?/, '').replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** Every setting, in the order of the sections. */
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
