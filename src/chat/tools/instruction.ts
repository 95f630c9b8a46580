import type { ChatMessage } from '../types.ts';
import type { ToolDialect } from './dialect.ts';
import { argumentsSchema } from './grammar.ts';
import { lfm2 } from './formats/lfm2.ts';
import { toToolSpecs } from './tool-specs.ts';
import type { ToolSpec } from './types.ts';

/** A call as models write it whose template has no form of its own. */
export const CALL_FORM = '{"name": "<tool>", "arguments": {<arguments>}}';

const HOW_TO_CALL = [
  'To call a tool, answer with nothing but one line of JSON for each call:',
  CALL_FORM,
  'The results come in the next message. When no tool is needed, answer in plain words.',
];

/** The instruction for models whose template does not describe the tools or the call format. */
export function describeTools(tools: readonly object[], dialect: ToolDialect): string | null {
  if (tools.length === 0 || (dialect.showsTools && dialect.showsCalls)) return null;
  if (dialect.format === lfm2) return 'Output function calls as JSON.';
  const list = dialect.showsTools
    ? []
    : [
        'You can call these tools. Each line is one tool as JSON with the JSON schema of its arguments:',
        ...toToolSpecs(tools).map(describeTool),
        '',
      ];
  // If the template writes calls, its model uses the same format.
  return [...list, ...(dialect.showsCalls ? describeForm(dialect) : HOW_TO_CALL)].join('\n');
}

function describeTool(tool: ToolSpec): string {
  return JSON.stringify({ name: tool.name, description: tool.description ?? '', parameters: argumentsSchema(tool) });
}

/** An example in the template's format, built from its grammar. */
function describeForm({ format }: ToolDialect): string[] {
  const tools: ToolSpec[] = [{ name: '<tool>', parameters: { type: 'object' } }];
  const { begin, calls, end } = format.grammar({ tools, choice: 'required', allowsParallel: false });
  const [call] = calls;
  return ['To call a tool, answer in this form:', `${begin}${call!.prefix}{<arguments>}${call!.suffix}${end}`];
}

/** The conversation with `instruction` appended to its system turn. */
export function addInstruction(messages: readonly ChatMessage[], instruction: string): ChatMessage[] {
  const [first, ...others] = messages;
  if (first?.role !== 'system' && first?.role !== 'developer') {
    return [{ role: 'system', content: instruction }, ...messages];
  }
  const content = first.content === '' ? instruction : `${first.content}\n\n${instruction}`;
  return [{ ...first, content }, ...others];
}
