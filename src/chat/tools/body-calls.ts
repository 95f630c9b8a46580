import type { CallContext, ToolFormat, ToolSpec } from './types.ts';
import { createGrammar } from './grammar.ts';
import type { CallSpelling } from './grammar.ts';
import { readUntil, skip, skipOneOf, skipSpaces } from './input.ts';
import type { Reader } from './input.ts';
import { MAX_NAME_CHARS, MAX_SPACES } from './limits.ts';

/** Calls with nested arguments in the family's own notation; translated when the call is complete. */
export interface BodyCalls {
  readonly name: string;
  readonly spelling: CallSpelling;
  /** Texts allowed before the first call. */
  readonly sections: readonly string[];
  readonly opener: string;
  readonly nameStop: string;
  readonly closer: string;
  readonly sectionClosers: readonly string[];
  /** Further markers inside the arguments. */
  readonly quotes?: readonly string[];
  /** The arguments as JSON, or null if invalid. */
  translate(body: string, tool: ToolSpec): string | null;
  detect: ToolFormat['detect'];
}

export function createBodyFormat(family: BodyCalls): ToolFormat {
  return {
    name: family.name,
    detect: family.detect,
    triggers: [...family.sections, family.opener],
    startTriggers: [],
    silent: [],
    markers: [
      ...family.sections,
      family.opener,
      family.nameStop,
      family.closer,
      ...family.sectionClosers,
      ...(family.quotes ?? []),
    ],
    parse: (context) => readCalls(context, family),
    grammar: (request) => createGrammar(family.spelling, request),
  };
}

function* readCalls(context: CallContext, family: BodyCalls): Reader<boolean> {
  const { input } = context;
  let isOpen = context.trigger === family.opener;
  let after = -1;
  for (;;) {
    yield* skipSpaces(input, MAX_SPACES);
    if (!isOpen && !(yield* skip(input, family.opener))) break;
    const head = yield* readUntil(input, [family.nameStop], MAX_NAME_CHARS);
    const tool = head === null ? undefined : context.tool(head.text.trim());
    if (tool === undefined) break;
    const body = yield* readUntil(input, [family.closer], Infinity);
    const json = body === null ? null : family.translate(body.text, tool);
    if (json === null) break;
    context.begin(tool.name);
    context.argument(json);
    context.end();
    after = input.position;
    isOpen = false;
  }
  if (after < 0) return false;
  input.position = after;
  yield* skipSpaces(input, MAX_SPACES);
  if ((yield* skipOneOf(input, family.sectionClosers)) === null) input.position = after;
  return true;
}
