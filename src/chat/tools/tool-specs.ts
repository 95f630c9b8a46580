import { RuvLLMError } from '../../core/errors.ts';
import type { ToolSpec } from './types.ts';

type Members = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The functions of OpenAI-style definitions, wrapped (`{type, function}`) or not. */
export function toToolSpecs(tools: readonly object[]): ToolSpec[] {
  return tools.map((tool, i) => {
    const inner = (tool as Members)['function'];
    const { name, description, parameters } = (isObject(inner) ? inner : tool) as Members;
    if (typeof name !== 'string' || name === '') {
      throw new RuvLLMError('invalid_option', `tools[${i}] has no name`);
    }
    if (parameters !== undefined && parameters !== null && !isObject(parameters)) {
      throw new RuvLLMError('invalid_option', `tools[${i}] ("${name}"): parameters must be a JSON schema object`);
    }
    return {
      name,
      ...(typeof description === 'string' ? { description } : {}),
      ...(isObject(parameters) ? { parameters } : {}),
    };
  });
}

/** Definitions with all members that templates read without checking: descriptions, properties, item types. */
export function fillToolGaps(tools: readonly object[]): object[] {
  return toToolSpecs(tools).map(({ name, description = '', parameters = {} }) => {
    const properties = isObject(parameters['properties']) ? parameters['properties'] : {};
    const filled = Object.entries(properties).map(([key, schema]) => [key, fillSchema(schema)]);
    return {
      type: 'function',
      function: {
        name,
        description,
        parameters: {
          type: 'object',
          required: [],
          ...parameters,
          properties: Object.fromEntries(filled) as object,
        },
      },
    };
  });
}

function fillSchema(schema: unknown): object {
  const members = isObject(schema) ? schema : {};
  // Keeps a type that is a list or missing: templates handle it or fail either way.
  const more =
    members['type'] === 'object' ? { additionalProperties: {} } : members['type'] === 'array' ? { items: {} } : {};
  const filled = { description: '', ...more, ...members } as Record<string, unknown>;
  if (typeof filled['additionalProperties'] === 'boolean') filled['additionalProperties'] = {};
  return filled;
}
