import type { Flag } from '../flags.ts';
import {
  DURATION,
  MAX_SECONDS,
  readBias,
  readDuration,
  readInteger,
  readNumber,
  readSeconds,
  readSize,
  SIZE,
} from '../values.ts';
import type { ValueReader } from '../values.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The type of a setting: its schema, and its conversion to text for the flag's reader. */
export interface ValueKind {
  readonly schema: JsonSchema;
  /** For messages: `an integer`. */
  readonly expected: string;
  /** The value as text; null if it has another type. */
  toText(value: unknown): string | null;
}

/** Not empty: an empty environment variable counts as unset. */
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

const TEXT: ValueKind = {
  schema: { type: 'string', minLength: 1 },
  expected: 'a non-empty string',
  toText: (value) => (isText(value) ? value : null),
};

const SWITCH: ValueKind = {
  schema: { type: 'boolean' },
  expected: 'true or false',
  toText: (value) => (typeof value === 'boolean' ? (value ? 'on' : 'off') : null),
};

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value);
const BIAS = /^\d{1,10}=[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
// Patterns of JSON Schema cannot ignore case.
const SIZE_PATTERN = '^(\\d+\\.?\\d*|\\.\\d+) ?(?:([kmgtKMGT])(?:[iI]?[bB])?|[bB])?$';

const BY_READER: ReadonlyMap<ValueReader<unknown>, ValueKind> = new Map<ValueReader<unknown>, ValueKind>([
  [
    readInteger,
    {
      schema: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      expected: 'an integer',
      toText: (value) => (isSafeInteger(value) ? String(value) : null),
    },
  ],
  [
    readNumber,
    {
      schema: { type: 'number' },
      expected: 'a number',
      toText: (value) => (typeof value === 'number' && Number.isFinite(value) ? String(value) : null),
    },
  ],
  [
    readSeconds,
    {
      schema: { type: 'number', minimum: 0.001, maximum: MAX_SECONDS },
      expected: `a number of seconds from 0.001 to ${MAX_SECONDS}`,
      toText: (value) => (typeof value === 'number' && value >= 0.001 && value <= MAX_SECONDS ? String(value) : null),
    },
  ],
  [
    readSize,
    {
      schema: {
        anyOf: [
          { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
          { type: 'string', pattern: SIZE_PATTERN },
        ],
      },
      expected: 'a number of bytes or a size such as "512MiB"',
      toText(value) {
        if (isSafeInteger(value) && value >= 0) return String(value);
        return isText(value) && SIZE.test(value) ? value : null;
      },
    },
  ],
  [
    readBias,
    {
      schema: { type: 'string', pattern: BIAS.source },
      expected: 'a string such as "15=-1.5"',
      toText: (value) => (isText(value) && BIAS.test(value) ? value : null),
    },
  ],
  [
    readDuration,
    {
      schema: { type: 'string', pattern: DURATION.source },
      expected: 'a duration such as "12h" or "7d"',
      toText: (value) => (isText(value) && DURATION.test(value) ? value : null),
    },
  ],
]);

/** The words of `auto|native|wasm`; an upper-case word is a placeholder. */
function choicesOf({ value, read }: Flag): readonly string[] | null {
  const words = value === null || read !== undefined ? [] : value.split('|');
  return words.length > 1 && words.every((word) => word === word.toLowerCase()) ? words : null;
}

function choiceKind(choices: readonly string[]): ValueKind {
  return {
    schema: { enum: choices },
    expected: `one of ${choices.join(', ')}`,
    toText: (value) => (typeof value === 'string' && choices.includes(value) ? value : null),
  };
}

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
  const kind =
    flag.value === null
      ? SWITCH
      : choices !== null
        ? choiceKind(choices)
        : ((flag.read === undefined ? undefined : BY_READER.get(flag.read)) ?? TEXT);
  return flag.isList === true ? listKind(kind) : kind;
}
