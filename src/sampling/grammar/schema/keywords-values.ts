import type { Dfa } from '../automata/automaton.ts';
import { dfaOfTexts } from '../automata/dfa.ts';
import { dfaOfRegex } from '../automata/regex-dfa.ts';
import { malformed, unsupported } from '../limits.ts';
import { parseDecimal } from '../numbers/decimal.ts';
import { ALL_NUMBERS } from '../numbers/number-set.ts';
import type { NumberSet } from '../numbers/number-set.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { FORMATS } from './formats.ts';
import type { Formula } from './formula-types.ts';
import { TYPE } from './formula-types.ts';
import { readCount, readList, readNumber, readText } from './read-values.ts';
import type { SchemaPlace } from './schema-document.ts';
import { isObject } from './schema-document.ts';
import type { KeywordReader, SchemaReader } from './reader-types.ts';

const WHOLE: NumberSet = { ...ALL_NUMBERS, step: parseDecimal('1') };

function point(value: number): NumberSet {
  const bound = { value: parseDecimal(String(value)), isOpen: false };
  return { ...ALL_NUMBERS, min: bound, max: bound };
}

function checkText(text: string, pointer: string): string {
  if (!text.isWellFormed()) throw malformed('schema', pointer, 'a text with a lone surrogate cannot be written');
  return text;
}

/** Exactly one of the listed JSON values; property order is free. */
function oneOfValues(reader: SchemaReader, values: readonly unknown[], pointer: string): Formula {
  const { formulas } = reader;
  const texts: [string, number][] = [];
  const parts: Formula[] = [];
  for (const value of values) {
    formulas.fuel.burn(1, 'a list of values');
    if (typeof value === 'string') texts.push([checkText(value, pointer), 1]);
    else if (value === null) parts.push(formulas.types(TYPE.null));
    else if (typeof value === 'boolean') parts.push(formulas.atom({ kind: 'boolean', value }));
    else if (typeof value === 'number') parts.push(formulas.atom({ kind: 'number', set: point(value) }));
    else if (Array.isArray(value)) {
      const count = formulas.atom({ kind: 'item-count', min: value.length, max: value.length });
      const items = (value as unknown[]).map((item, index) =>
        formulas.atom({ kind: 'item', index, goal: oneOfValues(reader, [item], pointer) }),
      );
      parts.push(formulas.and([count, ...items]));
    } else if (isObject(value)) {
      const entries = Object.entries(value);
      const count = formulas.atom({ kind: 'key-count', min: entries.length, max: entries.length });
      const properties = entries.flatMap(([name, item]) => [
        formulas.atom({ kind: 'required', name: checkText(name, pointer) }),
        formulas.atom({ kind: 'property', name, goal: oneOfValues(reader, [item], pointer) }),
      ]);
      parts.push(formulas.and([count, ...properties]));
    }
  }
  if (texts.length > 0) parts.push(formulas.atom({ kind: 'text', dfa: dfaOfTexts(texts, formulas.fuel) }));
  return formulas.or(parts);
}

/** Adds the place to an error inside a pattern. */
export function readPattern(reader: SchemaReader, pattern: string, pointer: string) {
  try {
    return dfaOfRegex(pattern, true, reader.formulas.fuel);
  } catch (error) {
    if (!(error instanceof RuvLLMError) || error.data.reason === 'steps') throw error;
    throw new RuvLLMError(error.code, `${error.message} (${pointer})`, { data: { ...error.data, pointer } });
  }
}

function readTypes(reader: SchemaReader, value: unknown, place: SchemaPlace): Formula {
  const { formulas } = reader;
  const parts = (Array.isArray(value) ? (value as unknown[]) : [value]).map((name) => {
    if (name === 'integer') return formulas.atom({ kind: 'number', set: WHOLE });
    if (typeof name === 'string' && Object.hasOwn(TYPE, name)) return formulas.types(TYPE[name as keyof typeof TYPE]);
    throw malformed('type', `${place.pointer}/type`, `${JSON.stringify(name)} is not a type`);
  });
  return formulas.or(parts);
}

const bound =
  (keyword: string, side: 'min' | 'max', isOpen: boolean): KeywordReader =>
  ({ formulas }, value, place) => {
    const limit = { value: parseDecimal(String(readNumber(value, place, keyword))), isOpen };
    return formulas.whenTyped({ kind: 'number', set: { ...ALL_NUMBERS, [side]: limit } });
  };

// Times with leap seconds take about 300 ms to build; one entry per format.
const formats = new Map<string, Dfa>();
const formatsOf = new WeakMap<object, Map<string, Dfa>>();

function readFormat(reader: SchemaReader, value: unknown, place: SchemaPlace): Formula {
  const { formulas, assertFormats } = reader;
  const name = readText(value, place, 'format');
  if (assertFormats === false) return formulas.always;
  const pattern = FORMATS.get(name);
  if (pattern === undefined && assertFormats === 'where-possible') return formulas.always;
  if (pattern === undefined)
    throw unsupported('format', `${place.pointer}/format`, `${JSON.stringify(name)} cannot be enforced`);
  // Requested once per schema: the order on the tape must not depend on earlier schemas.
  let own = formatsOf.get(formulas);
  if (own === undefined) formatsOf.set(formulas, (own = new Map()));
  const dfa =
    own.get(name) ??
    formulas.fuel.tape.next(name.length, () => {
      const known = formats.get(name) ?? dfaOfRegex(pattern(), false, formulas.fuel);
      formats.set(name, known);
      return known;
    });
  own.set(name, dfa);
  return formulas.whenTyped({ kind: 'text', dfa });
}

export const VALUE_KEYWORDS: readonly (readonly [string, KeywordReader])[] = [
  ['type', readTypes],
  ['const', (reader, value, place) => oneOfValues(reader, [value], `${place.pointer}/const`)],
  ['enum', (reader, value, place) => oneOfValues(reader, readList(value, place, 'enum'), `${place.pointer}/enum`)],
  ['minimum', bound('minimum', 'min', false)],
  ['maximum', bound('maximum', 'max', false)],
  ['exclusiveMinimum', bound('exclusiveMinimum', 'min', true)],
  ['exclusiveMaximum', bound('exclusiveMaximum', 'max', true)],
  [
    'multipleOf',
    ({ formulas }, value, place) => {
      const step = readNumber(value, place, 'multipleOf');
      if (step <= 0) throw malformed('multipleOf', `${place.pointer}/multipleOf`, `must be above 0, got ${step}`);
      return formulas.whenTyped({ kind: 'number', set: { ...ALL_NUMBERS, step: parseDecimal(String(step)) } });
    },
  ],
  [
    'minLength',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'length', min: readCount(value, place, 'minLength'), max: Infinity }),
  ],
  [
    'maxLength',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'length', min: 0, max: readCount(value, place, 'maxLength') }),
  ],
  [
    'pattern',
    (reader, value, place) => {
      const dfa = readPattern(reader, readText(value, place, 'pattern'), `${place.pointer}/pattern`);
      return reader.formulas.whenTyped({ kind: 'text', dfa });
    },
  ],
  ['format', readFormat],
];
