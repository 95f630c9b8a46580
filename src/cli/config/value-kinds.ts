import type { Flag } from '../flags.ts';
import { MAX_SECONDS, readBias, readInteger, readNumber, readSeconds, readSize, SIZE } from '../values.ts';
import type { ValueReader } from '../values.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What a setting may be in a file: as a schema, and as the text that the flag's own reader reads. */
export interface ValueKind {
  readonly schema: JsonSchema;
  /** For messages: `a whole number`. */
  readonly expected: string;
  /** The text, or null for a value of another kind. */
  toText(value: unknown): string | null;
}

/** A variable that is set to nothing counts as unset, so no setting can be that. */
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

const TEXT: ValueKind = {
  schema: { type: 'string', minLength: 1 },
  expected: 'a text',
  toText: (value) => (isText(value) ? value : null),
};

const SWITCH: ValueKind = {
  schema: { type: 'boolean' },
  expected: 'true or false',
  toText: (value) => (typeof value === 'boolean' ? (value ? 'on' : 'off') : null),
};

const isSafeInteger = (value: unknown): value is number => Number.isSafeInteger(value);
const BIAS = /^\d{1,10}=[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
// JSON Schema has no flags: both cases are spelled out.
const SIZE_PATTERN = '^(\\d+\\.?\\d*|\\.\\d+) ?(?:([kmgtKMGT])(?:[iI]?[bB])?|[bB])?$';

const BY_READER: ReadonlyMap<ValueReader<unknown>, ValueKind> = new Map<ValueReader<unknown>, ValueKind>([
  [
    readInteger,
    {
      schema: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      expected: 'a whole number',
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
      expected: 'a text such as "15=-1.5"',
      toText: (value) => (isText(value) && BIAS.test(value) ? value : null),
    },
  ],
]);

/** `auto|native|wasm`: one of these words; a word in capitals stands for something else. */
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
    expected: `a list, each of it ${item.expected}`,
    toText(value) {
      if (!Array.isArray(value) || value.length === 0) return null;
      const texts = value.map((one) => item.toText(one));
      return texts.includes(null) ? null : JSON.stringify(texts);
    },
  };
}

/** The kind of an option, which follows from how its flag is read. */
export function kindOf(flag: Flag): ValueKind {
  const choices = choicesOf(flag);
  const one =
    flag.value === null
      ? SWITCH
      : choices !== null
        ? choiceKind(choices)
        : ((flag.read === undefined ? undefined : BY_READER.get(flag.read)) ?? TEXT);
  return flag.isList === true ? listKind(one) : one;
}
