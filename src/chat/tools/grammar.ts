import { checkParameterList, checkReferences, pointerTo, resolveRoot, unsupportedSchema } from './parameter-schema.ts';
import type { ArgumentsGrammar, CallGrammar, GrammarRequest, ParameterGrammar, ToolSpec } from './types.ts';

/** How a family writes calls; the source of its grammar. */
export interface CallSpelling {
  readonly triggers: readonly string[];
  readonly begin: string;
  prefix(name: string): string;
  readonly suffix: string;
  /** Null: one call per turn. */
  readonly separator: string | null;
  readonly end: string;
  /** Absent: the arguments are JSON. */
  readonly parameters?: ParameterSpelling;
}

export interface ParameterSpelling {
  begin(name: string, isRaw: boolean): string;
  readonly separator: string;
  end(name: string, isRaw: boolean): string;
  /** Text that no value may contain: the parser would end the value or the call there. */
  readonly stop: string;
  /** Names the family's parser can read. Default: names without markup, quotes and line breaks. */
  readonly names?: RegExp;
}

// The maximum is below the parsers' limit for a name.
const PLAIN_NAMES = /^[^<>/"\r\n\p{Surrogate}]{1,200}$/u;

type Schema = Readonly<Record<string, unknown>>;

const NO_ARGUMENTS: Schema = { type: 'object', properties: {}, additionalProperties: false };

/** The schema of a tool's arguments, always an object. */
export function argumentsSchema(tool: ToolSpec): Schema {
  const schema = tool.parameters;
  if (schema === undefined || Object.keys(schema).length === 0) return NO_ARGUMENTS;
  return 'type' in schema ? schema : { type: 'object', ...schema };
}

/** Whether a parameter's text is used verbatim: its schema allows only strings. */
export function isRawString(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  const { type, enum: values } = schema as { type?: unknown; enum?: unknown };
  if (type !== undefined) return type === 'string';
  return Array.isArray(values) && values.length > 0 && values.every((value) => typeof value === 'string');
}

/** The schema of each named argument. */
export function propertiesOf(tool: ToolSpec): ReadonlyMap<string, unknown> {
  const properties = tool.parameters === undefined ? undefined : resolveRoot(tool.parameters)?.['properties'];
  return new Map(typeof properties === 'object' && properties !== null ? Object.entries(properties) : []);
}

function argumentsGrammar(tool: ToolSpec, spelling: ParameterSpelling | undefined): ArgumentsGrammar {
  const whole = argumentsSchema(tool);
  if (spelling === undefined) return { kind: 'json', schema: whole };
  const schema = resolveRoot(whole);
  checkParameterList(tool.name, schema);
  const required = Array.isArray(schema['required']) ? new Set<unknown>(schema['required']) : new Set<unknown>();
  const { names = PLAIN_NAMES } = spelling;
  const properties = Array.from(propertiesOf(tool)).filter(([, schema]) => schema !== false);
  for (const [, definitions] of Object.entries(schema).filter(([key]) => /^(\$defs|definitions)$/.test(key))) {
    checkReferences(tool.name, '', definitions);
  }
  const parameters = properties.map(([name, schema]): ParameterGrammar => {
    const isRaw = isRawString(schema);
    if (!names.test(name)) {
      throw unsupportedSchema(
        tool.name,
        'properties',
        pointerTo(name),
        "the model's tool-call format cannot write this name",
      );
    }
    checkReferences(tool.name, pointerTo(name), schema);
    return {
      tool: tool.name,
      name,
      begin: spelling.begin(name, isRaw),
      isRaw,
      schema: (typeof schema === 'object' && schema !== null ? schema : {}) as Schema,
      end: spelling.end(name, isRaw),
      stop: spelling.stop,
      isRequired: required.has(name),
    };
  });
  return { kind: 'parameters', parameters, separator: spelling.separator, schema };
}

/** The grammar for calls of the tools that `choice` allows. */
export function createGrammar(spelling: CallSpelling, request: GrammarRequest): CallGrammar {
  const { choice, tools } = request;
  const chosen = typeof choice === 'object' ? tools.filter((tool) => tool.name === choice.name) : tools;
  return {
    isRequired: choice !== 'auto',
    triggers: spelling.triggers,
    begin: spelling.begin,
    calls: chosen.map((tool) => ({
      name: tool.name,
      prefix: spelling.prefix(tool.name),
      arguments: argumentsGrammar(tool, spelling.parameters),
      suffix: spelling.suffix,
    })),
    separator: request.allowsParallel && typeof choice !== 'object' ? spelling.separator : null,
    end: spelling.end,
  };
}
