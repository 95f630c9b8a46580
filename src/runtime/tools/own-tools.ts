import { z } from 'zod';
import type { ServedTool } from '../../mcp/server.ts';
import { inputSchemaOf, operationOf } from '../../memory/operations/index.ts';
import { parseWith, text } from '../../memory/schemas/primitives.ts';

/** The operations that other agents may use through MCP. */
const OPERATIONS = ['memory.search', 'memory.add', 'memory.list', 'memory.get', 'memory.remove', 'audit.search', 'audit.verify'] as const; // prettier-ignore

/** The parts of RuvLLM behind the tools, of one tenant. */
export interface OwnToolsTarget {
  /** Whether the caller may change data and generate. */
  readonly canWrite: boolean;
  /** Runs an operation of the memory; null: there is no memory. */
  readonly call: ((operation: string, input: object) => Promise<object>) | null;
  /** Explains which model would answer; null: there is no router. */
  readonly explain: ((prompt: string, signal: AbortSignal) => Promise<object>) | null;
  /** Answers a prompt; null: there is no model. */
  readonly generate: ((request: GenerateToolInput, signal: AbortSignal) => Promise<string>) | null;
}

const generateInput = z.strictObject({
  prompt: text(1 << 20, 1).describe('the message of the user'),
  system: text(1 << 20).optional().describe('the system prompt'), // prettier-ignore
  model: text(256, 1).optional().describe('name of the model; default: the first one'), // prettier-ignore
  maxTokens: z.int().min(1).max(1 << 20).default(1024), // prettier-ignore
  temperature: z.number().min(0).max(10).optional(),
});
export type GenerateToolInput = z.output<typeof generateInput>;
const routeInput = z.strictObject({ prompt: text(1 << 20, 1) });

/** A hint for models that use the tools. */
export const OWN_INSTRUCTIONS =
  'Memory, audit log, routing and models of RuvLLM. memory_search finds texts by words and meaning; memory_add stores one.';

/** The tools that RuvLLM offers to other agents. Those that the target or the caller's scope lacks are left out. */
export function createOwnTools({ canWrite, call, explain, generate }: OwnToolsTarget): readonly ServedTool[] {
  const tools: ServedTool[] = [];
  for (const name of call === null ? [] : OPERATIONS) {
    const operation = operationOf(name);
    const isReadOnly = operation.scope === 'read';
    if (!isReadOnly && !canWrite) continue;
    tools.push({
      // Some clients allow no dots.
      name: name.replace('.', '_'),
      description: operation.summary,
      inputSchema: inputSchemaOf(operation),
      isReadOnly,
      call: (args) => call!(name, args),
    });
  }
  if (explain !== null && canWrite) {
    tools.push({
      name: 'route_explain',
      description: 'The model that the router would choose for a prompt, and why, without generating.',
      inputSchema: schemaOf(routeInput),
      isReadOnly: true,
      call: (args, signal) => explain(parseWith<{ prompt: string }>(routeInput as never, args, 'route_explain').prompt, signal), // prettier-ignore
    });
  }
  if (generate !== null && canWrite) {
    tools.push({
      name: 'generate',
      description: 'Answers a prompt with a local model.',
      inputSchema: schemaOf(generateInput),
      isReadOnly: true,
      call: (args, signal) => generate(parseWith<GenerateToolInput>(generateInput as never, args, 'generate'), signal),
    });
  }
  return tools;
}

const schemaOf = (input: z.ZodType): ServedTool['inputSchema'] => inputSchemaOf({ input });
