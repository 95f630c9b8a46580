import { type JsonSchema, numberKind } from '../../core/kinds.ts';
import { KERNEL_CHOICE, KERNEL_CHOICES } from '../../kernels/kernel-choice.ts';
import type { Flag } from '../flags.ts';
import {
  DURATION,
  MAX_SECONDS,
  readBias,
  readDuration,
  readGpuLayers,
  readInteger,
  readKernels,
  readNumber,
  readSeconds,
  readSize,
  SIZE,
} from '../values.ts';
import type { ValueReader } from '../values.ts';

/** The type of a setting: its schema, and its conversion to text for the flag's reader. */
export interface ValueKind {
  readonly schema: JsonSchema;
  /** For messages: `an integer`. */
  readonly expected: string;
  /** The value as text; null if it has another type. */
  toText(value: unknown): string | null;
}

const kind = (schema: JsonSchema, expected: string, is: (value: unknown) => boolean): ValueKind => ({
  schema,
  expected,
  toText: (value) => (is(value) ? String(value) : null),
});

/** A text that is not empty, because an empty environment variable counts as unset. */
const textKind = (expected: string, pattern?: RegExp): ValueKind =>
  kind(
    { type: 'string', ...(pattern === undefined ? { minLength: 1 } : { pattern: pattern.source }) },
    expected,
    (value) => typeof value === 'string' && value !== '' && pattern?.test(value) !== false,
  );

const TEXT = textKind('a non-empty string');
const SWITCH: ValueKind = {
  schema: { type: 'boolean' },
  expected: 'true or false',
  toText: (value) => (typeof value === 'boolean' ? (value ? 'on' : 'off') : null),
};

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value);
// Patterns of JSON Schema cannot ignore case.
const SIZE_PATTERN = '^(\\d+\\.?\\d*|\\.\\d+) ?(?:([kmgtKMGT])(?:[iI]?[bB])?|[bB])?$';

const BY_READER: ReadonlyMap<ValueReader<unknown>, ValueKind> = new Map<ValueReader<unknown>, ValueKind>([
  [
    readInteger,
    kind(
      { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      'an integer',
      isSafeInteger,
    ),
  ],
  [readNumber, kind({ type: 'number' }, 'a number', Number.isFinite)],
  [
    readSeconds,
    kind(
      { type: 'number', minimum: 0.001, maximum: MAX_SECONDS },
      `a number of seconds from 0.001 to ${MAX_SECONDS}`,
      numberKind(0.001, MAX_SECONDS).is,
    ),
  ],
  [
    readSize,
    kind(
      {
        anyOf: [
          { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
          { type: 'string', pattern: SIZE_PATTERN },
        ],
      },
      'a number of bytes or a size such as "512MiB"',
      (value) => (typeof value === 'string' ? SIZE.test(value) : isSafeInteger(value) && value >= 0),
    ),
  ],
  [readBias, textKind('a string such as "15=-1.5"', /^\d{1,10}=[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/)],
  [readKernels, textKind(KERNEL_CHOICES, KERNEL_CHOICE)],
  [
    readGpuLayers,
    kind(
      { anyOf: [{ const: 'auto' }, { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }] },
      'auto or a number of layers',
      (value) => value === 'auto' || (isSafeInteger(value) && value >= 0),
    ),
  ],
  [readDuration, textKind('a duration such as "12h" or "7d"', DURATION)],
]);

/** The words of `auto|native|wasm`; an upper-case word is a placeholder. */
function choicesOf({ value, read }: Flag): readonly string[] | null {
  const words = value === null || read !== undefined ? [] : value.split('|');
  return words.length > 1 && words.every((word) => word === word.toLowerCase()) ? words : null;
}

const choiceKind = (choices: readonly string[]): ValueKind =>
  kind({ enum: choices }, `one of ${choices.join(', ')}`, (value) => (choices as readonly unknown[]).includes(value));

function listKind(item: ValueKind): ValueKind {
  return {
    schema: { type: 'array', items: item.schema, minItems: 1 },
    expected: `a non-empty list; each item must be ${item.expected}`,
    toText(value) {
      if (!Array.isArray(value) || value.length === 0) return null;
      const texts = value.map((element) => item.toText(element));
      return texts.includes(null) ? null : JSON.stringify(texts);
    },
  };
}

/** The value kind of a flag, derived from its reader. */
export function kindOf(flag: Flag): ValueKind {
  const choices = choicesOf(flag);
  const item =
    flag.value === null
      ? SWITCH
      : choices !== null
        ? choiceKind(choices)
        : ((flag.read === undefined ? undefined : BY_READER.get(flag.read)) ?? TEXT);
  return flag.isList === true ? listKind(item) : item;
}
