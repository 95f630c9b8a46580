import type { CallContext, ToolFormat } from './types.ts';
import { createGrammar, isRawString, propertiesOf } from './grammar.ts';
import type { CallSpelling } from './grammar.ts';
import { readUntil, skip, skipOneOf, skipSpaces } from './input.ts';
import type { Reader } from './input.ts';
import { parseJson } from './json-reader.ts';
import { MAX_NAME_CHARS, MAX_SPACES } from './limits.ts';
import { pythonToJson } from './python-literal.ts';

/** Calls with each argument between markers; strings are unquoted, other values JSON. */
export interface ParameterCalls {
  readonly name: string;
  readonly spelling: CallSpelling;
  readonly sections: readonly string[];
  /** Text that begins a call; empty: the name directly follows the section's marker. */
  readonly opener: string;
  readonly nameStops: readonly string[];
  /** A name that ends with this marker has no separate line: the marker is read again. */
  readonly rereadStops?: readonly string[];
  readonly keyOpener: string;
  readonly keyStop: string;
  /** Between key and value, optionally with the type of the value. */
  readonly valueOpeners: readonly { readonly text: string; readonly isString?: boolean }[];
  readonly valueStop: string;
  /** True: values are on separate lines, and the line breaks around them belong to the format. */
  readonly isTrimmed: boolean;
  readonly closer: string;
  readonly sectionClosers: readonly string[];
  /** True: the section's closer ends one call, and another section may follow. */
  readonly isSectionPerCall: boolean;
  detect: ToolFormat['detect'];
}

export function createParameterFormat(family: ParameterCalls): ToolFormat {
  return {
    name: family.name,
    detect: family.detect,
    triggers: family.opener === '' ? family.sections : [...family.sections, family.opener],
    startTriggers: [],
    silent: [],
    markers: [
      ...family.sections,
      family.opener,
      ...family.nameStops,
      family.keyOpener,
      family.keyStop,
      ...family.valueOpeners.map(({ text }) => text),
      family.valueStop,
      family.closer,
      ...family.sectionClosers,
    ],
    parse: (context) => readCalls(context, family),
    grammar: (request) => createGrammar(family.spelling, request),
  };
}

function* readCalls(context: CallContext, family: ParameterCalls): Reader<boolean> {
  const { input } = context;
  let isOpen = context.trigger === family.opener;
  let after = -1;
  for (;;) {
    if (!isOpen) {
      yield* skipSpaces(input, MAX_SPACES);
      if (!(yield* skip(input, family.opener))) break;
    }
    if (!(yield* readCall(context, family))) break;
    after = input.position;
    if (family.isSectionPerCall || family.opener === '') break;
    isOpen = false;
  }
  if (after < 0 || context.isOpen()) return false;
  input.position = after;
  yield* skipSpaces(input, MAX_SPACES);
  if ((yield* skipOneOf(input, family.sectionClosers)) === null) input.position = after;
  return true;
}

function* readCall(context: CallContext, family: ParameterCalls): Reader<boolean> {
  const { input } = context;
  const head = yield* readUntil(input, family.nameStops, MAX_NAME_CHARS);
  if (head === null) return false;
  if (family.rereadStops?.includes(head.stop) === true) input.position -= head.stop.length;
  const tool = context.tool(head.text.trim());
  if (tool === undefined) return false;
  const schemas = propertiesOf(tool);
  const keys = new Set<string>();
  yield* skipSpaces(input, MAX_SPACES);
  // Only a name so far: prose may continue like that.
  const isEmpty = yield* skip(input, family.closer);
  if (!isEmpty) {
    if (!(yield* skip(input, family.keyOpener))) return false;
    input.position -= family.keyOpener.length;
  }
  context.begin(tool.name);
  for (let isClosed = isEmpty; !isClosed; isClosed = yield* skip(input, family.closer)) {
    if (!(yield* skip(input, family.keyOpener))) return false;
    const parameter = yield* readParameter(context, family, schemas);
    if (parameter === null || keys.has(parameter.key)) return false;
    context.argument(`${keys.size === 0 ? '{' : ', '}${JSON.stringify(parameter.key)}: ${parameter.json}`);
    keys.add(parameter.key);
    yield* skipSpaces(input, MAX_SPACES);
  }
  context.argument(keys.size === 0 ? '{}' : '}');
  context.end();
  return true;
}

function* readParameter(
  { input }: CallContext,
  family: ParameterCalls,
  schemas: ReadonlyMap<string, unknown>,
): Reader<{ key: string; json: string } | null> {
  const key = (yield* readUntil(input, [family.keyStop], MAX_NAME_CHARS))?.text;
  if (key === undefined) return null;
  let isString: boolean | undefined;
  if (family.valueOpeners.length > 0) {
    yield* skipSpaces(input, MAX_SPACES);
    const opener = yield* skipOneOf(
      input,
      family.valueOpeners.map(({ text }) => text),
    );
    if (opener === null) return null;
    isString = family.valueOpeners.find(({ text }) => text === opener)?.isString;
  }
  const value = yield* readUntil(input, [family.valueStop], Infinity);
  if (value === null) return null;
  const text = family.isTrimmed ? value.text.replace(/^\n/, '').replace(/\n$/, '') : value.text;
  return { key, json: toJsonValue(text, schemas.get(key), isString) };
}

/** Converts an unquoted value to JSON by its schema. */
export function toJsonValue(text: string, schema: unknown, isString: boolean | undefined): string {
  if (isString === true || (isString === undefined && isRawString(schema))) return JSON.stringify(text);
  if (parseJson(text) !== undefined) return text.trim();
  return pythonToJson(text) ?? JSON.stringify(text);
}
