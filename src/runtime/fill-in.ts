import { RuvLLMError } from '../core/errors.ts';
import { type OptionReader, resolveOptions } from '../core/options.ts';
import type { Tokenizer } from '../tokenizers/types.ts';

/** A text around a gap: the prompt is the text before it, the answer fills it. */
export interface FillIn {
  /** The text after the gap. May be empty. */
  suffix: string;
  /** The beginning of the text in the gap; the answer continues it. Default: none. */
  start?: string;
  /** Related files, the most relevant last. Default: none. */
  files?: readonly FillInFile[];
}

/** A file that helps to fill a gap. */
export interface FillInFile {
  readonly name: string;
  readonly text: string;
}

export type ResolvedFillIn = Readonly<Required<FillIn>>;

const MAX_FILES = 256;
/** Names that models have seen in training for a repository and a file without one. */
const REPOSITORY = 'repository';
const FILE = 'file';

const textOption: OptionReader<string> = (value, name) => {
  if (typeof value === 'string') return value;
  throw new RuvLLMError('invalid_option', `option "${name}" must be a string`, { data: { option: name } });
};

const isFile = (file: unknown): file is FillInFile =>
  typeof file === 'object' &&
  file !== null &&
  typeof (file as FillInFile).name === 'string' &&
  typeof (file as FillInFile).text === 'string';

const filesOption: OptionReader<readonly FillInFile[]> = (value, name) => {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.length <= MAX_FILES && value.every(isFile)) return value;
  const message = `option "${name}" must be a list of at most ${MAX_FILES} objects { name, text }`;
  throw new RuvLLMError('invalid_option', message, { data: { option: name } });
};

/** Reads the option `fill`; null: a plain continuation. */
export const fillInOption: OptionReader<ResolvedFillIn | null> = (value, name) =>
  value == null
    ? null
    : resolveOptions<ResolvedFillIn>(name, value as FillIn, {
        suffix: textOption,
        start: (start, option) => textOption(start ?? '', option),
        files: filesOption,
      });

/** Number of characters besides the prompt. */
export function lengthOfFillIn({ suffix, start = '', files = [] }: FillIn): number {
  return files.reduce((sum, { name, text }) => sum + name.length + text.length, suffix.length + start.length);
}

/**
 * The prompt: related files, then prefix, suffix and start behind their marks. The texts are untrusted, so that a file that
 * spells out a mark cannot move the gap.
 */
export function encodeFillIn(prefix: string, { suffix, start, files }: ResolvedFillIn, tokenizer: Tokenizer): number[] {
  const { fillIn: tokens, addsBos, bosId } = tokenizer;
  if (tokens === null) {
    throw new RuvLLMError('unsupported', 'this model has no tokens for filling in the middle of a text', {
      data: { option: 'fill' },
    });
  }
  const encode = (text: string): number[] => (text === '' ? [] : tokenizer.encode(text, { isContinuation: true }));
  const ids: number[] = addsBos && bosId !== null ? [bosId] : [];
  if (tokens.fileId !== null && files.length > 0) {
    if (tokens.repositoryId !== null) ids.push(tokens.repositoryId, ...encode(`${REPOSITORY}\n`));
    for (const { name, text } of files) ids.push(tokens.fileId, ...encode(`${name}\n${text}\n`));
    ids.push(tokens.fileId, ...encode(`${FILE}\n`));
  } else {
    for (const { name, text } of files) ids.push(...encode(`${name}\n${text}\n\n`));
  }
  ids.push(tokens.prefixId, ...encode(prefix), tokens.suffixId, ...encode(suffix), tokens.middleId, ...encode(start));
  return ids;
}
