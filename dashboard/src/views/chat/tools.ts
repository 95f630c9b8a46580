import { messageOf } from '../../api/errors.ts';
import { messages } from '../../messages/index.ts';

const text = messages.chat.options;
/** The names that every tool format allows. */
const NAME = /^[\w-]{1,64}$/;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses OpenAI tool definitions; an empty text is none. Throws an error that says which definition is wrong. */
export function parseTools(json: string): readonly object[] {
  if (json.trim() === '') return [];
  let tools: unknown;
  try {
    tools = JSON.parse(json);
  } catch (error) {
    throw new Error(text.toolsNotJson(messageOf(error)), { cause: error });
  }
  if (!Array.isArray(tools)) throw new Error(text.toolsNotList);
  for (const [index, tool] of tools.entries()) {
    const definition: unknown = isObject(tool) && tool['type'] === 'function' ? tool['function'] : null;
    if (!isObject(definition)) throw new Error(text.toolNotFunction(index + 1));
    if (!NAME.test(String(definition['name'] ?? ''))) throw new Error(text.toolWithoutName(index + 1));
    if (!isObject(definition['parameters'] ?? {})) throw new Error(text.toolParameters(index + 1));
  }
  return tools as object[];
}
