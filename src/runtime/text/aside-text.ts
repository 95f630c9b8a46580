import { booleanOption, instanceOption, optional, type OptionReaders, resolveOptions } from '../../core/options.ts';
import { DEFAULT_TENANT } from '../default-tenant.ts';
import { type EncodeOptions, resolvePromptOptions } from '../generate-options.ts';
import { isAbortSignal } from '../model-config.ts';
import { nameOption } from '../name-option.ts';
import type { Prompt } from '../prompt.ts';
import { doTextTask, preparePromptAside, type TextCaller, type TextContext } from './text-thread.ts';

/** Options of every call. */
export interface AsideOptions {
  /** Aborts the call, which fails with `aborted`. */
  signal?: AbortSignal;
  /** Tenants take turns. Default `local`. */
  tenant?: string;
}

/** The tokenizer for texts of any length: long ones are processed in a separate thread, if there is one. */
export interface AsideText {
  /** As `Model.encodePrompt`. */
  encodePrompt(prompt: Prompt, options?: EncodeOptions & AsideOptions): Promise<readonly number[]>;
  /** As `Tokenizer.encode`. */
  encode(text: string, options?: { addSpecial?: boolean } & AsideOptions): Promise<readonly number[]>;
  /** As `Tokenizer.decode`. */
  decode(ids: ArrayLike<number>, options?: { skipSpecial?: boolean } & AsideOptions): Promise<string>;
}

const CALLER: OptionReaders<TextCaller> = {
  signal: optional(instanceOption('an AbortSignal', isAbortSignal)),
  tenant: (value, name) => nameOption(value === undefined ? DEFAULT_TENANT : value, name),
};

export function createAsideText(context: TextContext): AsideText {
  return {
    async encodePrompt(prompt, { signal, tenant, ...options } = {}) {
      const resolved = resolvePromptOptions(options);
      const caller = resolveOptions<TextCaller>('encodePrompt', { signal, tenant }, CALLER);
      return (await preparePromptAside(context, prompt, resolved, caller)).ids;
    },
    async encode(text, given) {
      const readers = { ...CALLER, addSpecial: booleanOption(false) };
      const { addSpecial, ...caller } = resolveOptions<TextCaller & { addSpecial: boolean }>('encode', given, readers);
      return (await doTextTask(context, { kind: 'encode', texts: [text], options: { addSpecial } }, caller)).lists[0]!;
    },
    async decode(ids, given) {
      const readers = { ...CALLER, skipSpecial: booleanOption(true) };
      const { skipSpecial, ...caller } = resolveOptions<TextCaller & { skipSpecial: boolean }>(
        'decode',
        given,
        readers,
      );
      return (await doTextTask(context, { kind: 'decode', ids, options: { skipSpecial } }, caller)).text!;
    },
  };
}
