import { isRecord } from './json-rpc.ts';
import { MCP_LIMITS } from './limits.ts';
import { cutChars } from './own-text.ts';

/** A tool as its server describes it. Texts and hints come from the server: they are not trusted. */
export interface McpTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments, of type object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Whether the server says that the tool changes nothing. */
  readonly isReadOnly: boolean;
}

/** A tool that is not offered, and why. */
export interface UnusableTool {
  readonly name: string;
  readonly reason: string;
}

const MAX_SCHEMA_DEPTH = 32;

/** Depth of nested objects and lists; iterative, so that a deep schema is harmless. */
function depthOf(value: unknown): number {
  let deepest = 0;
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next.value !== 'object' || next.value === null) continue;
    const depth = next.depth + 1;
    deepest = Math.max(deepest, depth);
    if (deepest > MAX_SCHEMA_DEPTH) return deepest;
    for (const inner of Object.values(next.value)) open.push({ value: inner, depth });
  }
  return deepest;
}

/** Reads one entry of a list of tools. */
export function readTool(value: unknown): McpTool | UnusableTool {
  const { maxToolNameChars, maxDescriptionChars, maxSchemaChars } = MCP_LIMITS;
  if (!isRecord(value) || typeof value['name'] !== 'string' || value['name'] === '') {
    return { name: '', reason: 'a tool without a name' };
  }
  const name = cutChars(value['name'], maxToolNameChars);
  const { length } = value['name'];
  if (length > maxToolNameChars) {
    return { name, reason: `a name of ${length} characters; the limit is ${maxToolNameChars}` };
  }
  const { description, inputSchema = { type: 'object' }, annotations } = value;
  if (!isRecord(inputSchema) || (inputSchema['type'] ?? 'object') !== 'object') {
    return { name, reason: 'an input schema that is not of type object' };
  }
  if (depthOf(inputSchema) > MAX_SCHEMA_DEPTH) {
    return { name, reason: `an input schema nested deeper than ${MAX_SCHEMA_DEPTH}` };
  }
  const numChars = JSON.stringify(inputSchema).length;
  if (numChars > maxSchemaChars) {
    return { name, reason: `an input schema of ${numChars} characters; the limit is ${maxSchemaChars}` };
  }
  return {
    name,
    description: typeof description === 'string' ? cutChars(description, maxDescriptionChars) : '',
    inputSchema,
    // Only a plain `true` counts: a server that says "true" or 1 does not know the protocol.
    isReadOnly: isRecord(annotations) && annotations['readOnlyHint'] === true,
  };
}
