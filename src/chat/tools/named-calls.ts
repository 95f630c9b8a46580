import type { CallContext, ToolFormat } from './types.ts';
import { createGrammar } from './grammar.ts';
import type { CallSpelling } from './grammar.ts';
import { readUntil, skip, skipOneOf, skipSpaces } from './input.ts';
import type { Reader } from './input.ts';
import { streamJsonObject } from './json-reader.ts';
import { MAX_NAME_CHARS, MAX_SPACES } from './limits.ts';

/** Calls with the name between markers, followed by the arguments as JSON. */
export interface NamedCalls {
  readonly name: string;
  readonly spelling: CallSpelling;
  /** Texts allowed before the first call's opener. */
  readonly sections?: readonly string[];
  readonly openers: readonly string[];
  readonly startTriggers?: readonly string[];
  /** Between the opener and the name, after any text (an id, a type). */
  readonly beforeName?: { readonly text: string; readonly isOptional: boolean };
  readonly nameStops: readonly string[];
  /** Between the name and the arguments, after any text. */
  readonly beforeArguments?: string;
  /** The tool's name within the text; null: none. */
  cleanName?(text: string): string | null;
  readonly closers: readonly string[];
  readonly sectionClosers?: readonly string[];
  readonly silent?: readonly string[];
  readonly startSilent?: readonly string[];
  detect: ToolFormat['detect'];
  callId?: ToolFormat['callId'];
}

export function createNamedFormat(family: NamedCalls): ToolFormat {
  return {
    name: family.name,
    detect: family.detect,
    triggers: [...(family.sections ?? []), ...family.openers],
    startTriggers: family.startTriggers ?? [],
    silent: [...(family.sectionClosers ?? []), ...(family.silent ?? [])],
    startSilent: family.startSilent ?? [],
    markers: [
      ...(family.sections ?? []),
      ...family.openers,
      ...(family.startTriggers ?? []),
      ...(family.beforeName === undefined ? [] : [family.beforeName.text]),
      ...family.nameStops,
      ...(family.beforeArguments === undefined ? [] : [family.beforeArguments]),
      ...family.closers,
      ...(family.sectionClosers ?? []),
      ...(family.silent ?? []),
      ...(family.startSilent ?? []),
    ],
    parse: (context) => readCalls(context, family),
    grammar: (request) => createGrammar(family.spelling, request),
    ...(family.callId === undefined ? {} : { callId: family.callId }),
  };
}

function* readCalls(context: CallContext, family: NamedCalls): Reader<boolean> {
  const { input } = context;
  if (family.sections?.includes(context.trigger) === true) {
    yield* skipSpaces(input, MAX_SPACES);
    if ((yield* skipOneOf(input, family.openers)) === null) return false;
  }
  let after = -1;
  for (;;) {
    if (!(yield* readCall(context, family))) break;
    after = input.position;
    yield* skipSpaces(input, MAX_SPACES);
    if ((yield* skipOneOf(input, family.openers)) === null) break;
  }
  if (after < 0 || context.isOpen()) return false;
  input.position = after;
  yield* skipSpaces(input, MAX_SPACES);
  if ((yield* skipOneOf(input, family.sectionClosers ?? [])) === null) input.position = after;
  return true;
}

function* readCall(context: CallContext, family: NamedCalls): Reader<boolean> {
  const { input } = context;
  const { beforeName, cleanName = (text: string) => text.trim() } = family;
  let stops = family.nameStops;
  if (beforeName !== undefined) stops = beforeName.isOptional ? [beforeName.text, ...stops] : [beforeName.text];
  let head = yield* readUntil(input, stops, MAX_NAME_CHARS);
  if (head !== null && beforeName?.text === head.stop && !isNameAlready(context, family, head.text)) {
    head = yield* readUntil(input, family.nameStops, MAX_NAME_CHARS);
  }
  if (head === null) return false;
  const tool = context.tool(cleanName(head.text) ?? '');
  if (tool === undefined) return false;
  if (family.beforeArguments !== undefined && head.stop !== family.beforeArguments) {
    if ((yield* readUntil(input, [family.beforeArguments], MAX_SPACES)) === null) return false;
  }
  yield* skipSpaces(input, MAX_SPACES);
  if (!(yield* skip(input, '{'))) return false;
  input.position--;
  context.begin(tool.name);
  if (!(yield* streamJsonObject(context))) return false;
  context.end();
  const after = input.position;
  yield* skipSpaces(input, MAX_SPACES);
  if ((yield* skipOneOf(input, family.closers)) === null) input.position = after;
  return true;
}

/** Later versions of a family omit the text before the name, and its marker follows the name instead. */
function isNameAlready(context: CallContext, family: NamedCalls, text: string): boolean {
  return family.beforeName?.isOptional === true && context.tool(text.trim()) !== undefined;
}
