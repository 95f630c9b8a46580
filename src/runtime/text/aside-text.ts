import { booleanOption, instanceOption, optional, resolveOptions } from '../../core/options.ts';
import { type EncodeOptions, resolvePromptOptions } from '../generate-options.ts';
import { isAbortSignal } from '../model-config.ts';
import type { Prompt } from '../prompt.ts';
import { doTextTask, preparePromptAside, type TextContext } from './text-thread.ts';

/** Aborts the call, which fails with `aborted`. */
export interface AsideOptions {
  signal?: AbortSignal;
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

const signalOption = optional(instanceOption('an AbortSignal', isAbortSignal));

export function createAsideText(context: TextContext): AsideText {
  return {
    async encodePrompt(prompt, { signal, ...options } = {}) {
      const resolved = resolvePromptOptions(options);
      return (await preparePromptAside(context, prompt, resolved, signalOption(signal, 'signal'))).ids;
    },
    async encode(text, given) {
      const { signal, ...options } = resolveOptions<{ signal: AbortSignal | null; addSpecial: boolean }>(
        'encode',
        given,
        { signal: signalOption, addSpecial: booleanOption(false) },
      );
      return (await doTextTask(context, { kind: 'encode', texts: [text], options }, signal)).lists[0]!;
    },
    async decode(ids, given) {
      const { signal, ...options } = resolveOptions<{ signal: AbortSignal | null; skipSpecial: boolean }>(
        'decode',
        given,
        { signal: signalOption, skipSpecial: booleanOption(true) },
      );
      return (await doTextTask(context, { kind: 'decode', ids, options }, signal)).text!;
    },
  };
}
