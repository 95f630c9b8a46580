import type { CallContext, ToolFormat, ToolSpec } from './types.ts';
import { createGrammar } from './grammar.ts';
import type { CallSpelling } from './grammar.ts';
import { more, skip, skipOneOf, skipSpaces } from './input.ts';
import type { Reader } from './input.ts';
import { asString, isJsonObject, readJson, streamJsonObject } from './json-reader.ts';
import { MAX_HEADER_CHARS, MAX_SPACES } from './limits.ts';

/** Calls as JSON objects that contain the name and the arguments, with or without markers. */
export interface JsonCalls {
  readonly name: string;
  readonly spelling: CallSpelling;
  readonly markers: readonly string[];
  /** Texts that begin calls only at the start of the answer: brackets, fences. */
  readonly bare?: readonly string[];
  readonly nameKeys: readonly string[];
  readonly argumentKeys: readonly string[];
  /** Texts allowed between two calls besides whitespace and a comma. */
  readonly separators?: readonly string[];
  /** Texts that may end the calls, most likely first. */
  readonly closers: readonly string[];
  readonly silent?: readonly string[];
  detect: ToolFormat['detect'];
  write?: ToolFormat['write'];
}

/** Members that some families add; with any other key it is not a call. */
const EXTRA_KEYS: ReadonlySet<string> = new Set(['id', 'type', 'index', 'tool_call_id', 'call_id']);

export function createJsonFormat(family: JsonCalls): ToolFormat {
  return {
    name: family.name,
    detect: family.detect,
    triggers: family.markers,
    startTriggers: family.bare ?? [],
    silent: family.silent ?? [],
    markers: [...family.markers, ...(family.separators ?? []), ...family.closers, ...(family.silent ?? [])],
    parse: (context) => readCalls(context, family),
    grammar: (request) => createGrammar(family.spelling, request),
    ...(family.write === undefined ? {} : { write: family.write }),
  };
}

function* readCalls(context: CallContext, family: JsonCalls): Reader<boolean> {
  const { input } = context;
  // A bracket belongs to the JSON that follows.
  if (context.trigger === '{' || context.trigger === '[') input.position--;
  yield* skipSpaces(input, MAX_SPACES);
  const isList = yield* skip(input, '[');
  let after = -1;
  for (;;) {
    yield* skipSpaces(input, MAX_SPACES);
    if (!(yield* readCall(context, family))) break;
    after = input.position;
    yield* skipSpaces(input, MAX_SPACES);
    yield* skipOneOf(input, [',', ...(family.separators ?? [])]);
  }
  if (after < 0 || context.isOpen()) return false;
  input.position = after;
  if (isList) {
    yield* skipSpaces(input, MAX_SPACES);
    if (yield* skip(input, ']')) after = input.position;
  }
  yield* skipSpaces(input, MAX_SPACES);
  if ((yield* skipOneOf(input, family.closers)) === null) input.position = after;
  return true;
}

/** Reads one object; true: reported a complete call. */
function* readCall(context: CallContext, family: JsonCalls): Reader<boolean> {
  const { input } = context;
  if (!(yield* skip(input, '{'))) return false;
  let tool: ToolSpec | undefined;
  /** Arguments that came before the name. */
  let early: string | null = null;
  let isReported = false;
  for (;;) {
    yield* skipSpaces(input, MAX_SPACES);
    if (isReported && !(yield* more(input))) break; // The end of the answer replaces the closing brace.
    const key = yield* readKey(context);
    if (key === null) return false;
    if (family.nameKeys.includes(key) && tool === undefined) {
      const json = yield* readJson(input, MAX_HEADER_CHARS);
      tool = json === null ? undefined : context.tool(asString(json) ?? '');
      if (tool === undefined) return false;
      if (early !== null) isReported = report(context, tool, early);
    } else if (family.argumentKeys.includes(key) && !isReported && early === null) {
      if (!(yield* more(input))) return false;
      if (tool !== undefined && input.text[input.position] === '{') {
        context.begin(tool.name);
        if (!(yield* streamJsonObject(context))) return false;
        isReported = true;
      } else {
        const json = yield* readJson(input, MAX_HEADER_CHARS);
        // Some models write the arguments as in OpenAI's API: JSON inside a string.
        const text: string | null = json === null ? null : (asString(json) ?? json);
        if (text === null || !isJsonObject(text)) return false;
        if (tool === undefined) early = text;
        else isReported = report(context, tool, text);
      }
    } else if (!EXTRA_KEYS.has(key) || (yield* readJson(input, MAX_HEADER_CHARS)) === null) {
      return false;
    }
    yield* skipSpaces(input, MAX_SPACES);
    if (isReported && !(yield* more(input))) break;
    if (yield* skip(input, '}')) break;
    if (!(yield* skip(input, ','))) return false;
  }
  if (tool === undefined) return false;
  if (!isReported) report(context, tool, '{}');
  context.end();
  return true;
}

function report(context: CallContext, tool: ToolSpec, text: string): true {
  context.begin(tool.name);
  context.argument(text);
  return true;
}

function* readKey({ input }: CallContext): Reader<string | null> {
  if (!(yield* more(input)) || input.text[input.position] !== '"') return null;
  const json = yield* readJson(input, MAX_SPACES);
  if (json === null) return null;
  yield* skipSpaces(input, MAX_SPACES);
  if (!(yield* skip(input, ':'))) return null;
  yield* skipSpaces(input, MAX_SPACES);
  return asString(json);
}
