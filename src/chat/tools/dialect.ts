import { RuvLLMError } from '../../core/errors.ts';
import { TOOL_FORMATS } from './formats/index.ts';
import { lfm2 } from './formats/lfm2.ts';
import { plainJson } from './formats/plain-json.ts';
import { findReasoning } from './reasoning.ts';
import type { ReasoningFormat } from './reasoning.ts';
import type { ToolFormat } from './types.ts';

/** How a template expects and writes tools, calls and reasoning. */
export interface ToolDialect {
  readonly format: ToolFormat;
  readonly reasoning: ReasoningFormat | null;
  /** False: we describe the tools in the system turn. */
  readonly showsTools: boolean;
  /** False: we write calls into the assistant's text. */
  readonly showsCalls: boolean;
  /** False: results are shown as user turns. */
  readonly showsResults: boolean;
  /** False: a turn with several calls is shown as several turns. */
  readonly allowsParallel: boolean;
  /** `text`: the template inserts the JSON text of arguments unchanged, which keeps prompts stable. */
  readonly argumentsForm: 'text' | 'object';
  /** The content required for a turn with only calls. */
  readonly emptyContent: '' | null;
  /** False: calls are lost or moved if their turn also has content. */
  readonly keepsContentBesideCalls: boolean;
  /** Message field from which the template reads past reasoning; null: none. */
  readonly reasoningField: string | null;
  readonly keepsContentBesideReasoning: boolean;
  /** `alnum9`: ids must have nine letters or digits. */
  readonly idForm: 'any' | 'alnum9';
}

/** Of a template without tool support. */
export const PLAIN_DIALECT: ToolDialect = {
  format: plainJson,
  reasoning: null,
  showsTools: false,
  showsCalls: false,
  showsResults: false,
  allowsParallel: true,
  argumentsForm: 'text',
  emptyContent: '',
  keepsContentBesideCalls: true,
  reasoningField: null,
  keepsContentBesideReasoning: true,
  idForm: 'any',
};

/** Renders messages unchanged; throws `template_error`. */
export type ProbeRender = (messages: readonly object[], tools: readonly object[] | null) => string;

const NAME = 'probe_tool';
const QUESTION = 'PROBE-QUESTION';
const CONTENT = 'PROBE-CONTENT';
const REASONING = 'PROBE-REASONING';
const RESULT = 'PROBE-RESULT';
const VALUES = ['first probe', 'second probe'];
const REASONING_FIELDS = ['reasoning_content', 'thinking', 'reasoning'];

const TOOL = {
  type: 'function',
  function: {
    name: NAME,
    description: 'A probe',
    parameters: {
      type: 'object',
      properties: { key: { type: 'string', description: 'A key' } },
      required: ['key'],
    },
  },
};

interface CallShape {
  idForm: ToolDialect['idForm'];
  argumentsForm: ToolDialect['argumentsForm'];
  numCalls: number;
}

function probeCalls({ idForm, argumentsForm, numCalls }: CallShape): object[] {
  return VALUES.slice(0, numCalls).map((value, i) => ({
    id: idForm === 'any' ? `call_${i}` : `probe000${i}`,
    type: 'function',
    function: { name: NAME, arguments: argumentsForm === 'object' ? { key: value } : `{"key": "${value}"}` },
  }));
}

/** Determines the dialect by rendering small conversations and inspecting the output. */
export function probeDialect(render: ProbeRender, source: string): ToolDialect {
  /** The text after the question; null: the template rejected the turns. */
  const write = (turns: readonly object[], tools: readonly object[] | null = [TOOL]): string | null => {
    try {
      const text = render([{ role: 'user', content: QUESTION }, ...turns], tools);
      return text.slice(text.lastIndexOf(QUESTION) + QUESTION.length);
    } catch (error) {
      if (error instanceof RuvLLMError) return null;
      throw error;
    }
  };
  const hasTools = (): boolean => {
    try {
      return render([{ role: 'user', content: QUESTION }], [TOOL]).includes(NAME);
    } catch {
      return false;
    }
  };

  const callShape = findCallShape(write);
  const shape = callShape?.shape ?? { idForm: 'any', argumentsForm: 'object', numCalls: 1 };
  const emptyContent = callShape?.emptyContent ?? '';
  const assistant = (numCalls: number, members: object, argumentsForm: CallShape['argumentsForm'] = 'object') => ({
    role: 'assistant',
    content: emptyContent,
    tool_calls: probeCalls({ ...shape, numCalls, argumentsForm }),
    ...members,
  });
  const format = callShape && (TOOL_FORMATS.find((one) => one.detect(callShape.written, { name: NAME })) ?? null);
  const isText = callShape !== null && write([assistant(1, {}, 'text')]) === callShape.written;
  const parallel = write([assistant(2, {})]);
  const beside = write([assistant(1, { content: CONTENT })]) ?? '';
  const isCallKept = beside.includes(VALUES[0]!) && beside.lastIndexOf(CONTENT) < beside.indexOf(VALUES[0]!);
  const plain = (members: object): string => write([{ role: 'assistant', content: CONTENT, ...members }], null) ?? '';
  const reasoningField =
    REASONING_FIELDS.find((field) => write([assistant(1, { [field]: REASONING })])?.includes(REASONING)) ??
    REASONING_FIELDS.find((field) => plain({ [field]: REASONING }).includes(REASONING)) ??
    // Some templates show it only if a variable is set; the field's name is sufficient evidence.
    (source.includes('reasoning_content') ? 'reasoning_content' : null);
  const besideReasoning =
    reasoningField === null ? null : write([assistant(1, { content: CONTENT, [reasoningField]: REASONING })]);
  const result = { role: 'tool', tool_call_id: 'call_0', name: NAME, content: RESULT };
  const results = write([format == null ? { role: 'assistant', content: CONTENT } : assistant(1, {}), result]);

  return {
    format: format ?? (isLfm2(source) ? lfm2 : plainJson),
    reasoning: findReasoning(source),
    // An unknown call format must not be advertised beside ours.
    showsTools: (format != null || callShape === null) && hasTools(),
    showsCalls: format != null,
    showsResults: results?.includes(RESULT) === true,
    allowsParallel: format == null || VALUES.every((value) => parallel?.includes(value) === true),
    argumentsForm: isText ? 'text' : 'object',
    emptyContent,
    keepsContentBesideCalls: isCallKept,
    reasoningField,
    keepsContentBesideReasoning: besideReasoning !== null && besideReasoning.includes(VALUES[0]!),
    idForm: shape.idForm,
  };
}

/** LFM2's templates list the tools and mark results, but do not write calls. */
function isLfm2(source: string): boolean {
  return source.includes('List of tools: ') && source.includes('<|im_start|>');
}

function findCallShape(
  write: (turns: readonly object[]) => string | null,
): { written: string; shape: CallShape; emptyContent: '' | null } | null {
  for (const idForm of ['any', 'alnum9'] as const) {
    for (const emptyContent of ['', null] as const) {
      const shape: CallShape = { idForm, argumentsForm: 'object', numCalls: 1 };
      const written = write([{ role: 'assistant', content: emptyContent, tool_calls: probeCalls(shape) }]);
      if (written?.includes(NAME) === true && written.includes(VALUES[0]!)) return { written, shape, emptyContent };
    }
  }
  return null;
}
