import { RuvLLMError } from '../../core/errors.ts';
import { TOOL_FORMATS } from './formats/index.ts';
import { lfm2 } from './formats/lfm2.ts';
import { plainJson } from './formats/plain-json.ts';
import { findReasoning } from './reasoning.ts';
import type { ReasoningFormat } from './reasoning.ts';
import type { ToolFormat } from './types.ts';

/** How a template takes and writes tools, calls and reasoning. */
export interface ToolDialect {
  readonly format: ToolFormat;
  readonly reasoning: ReasoningFormat | null;
  /** False: the tools are described in the system turn by us. */
  readonly showsTools: boolean;
  /** False: calls are written into the assistant's text by us. */
  readonly showsCalls: boolean;
  /** False: results are shown as the user's words. */
  readonly showsResults: boolean;
  /** False: a turn with several calls is shown as several turns. */
  readonly allowsParallel: boolean;
  /** `text`: the template passes the JSON text of arguments through as it is, which keeps prompts stable. */
  readonly argumentsForm: 'text' | 'object';
  /** What the content of a turn must be that only calls. */
  readonly emptyContent: '' | null;
  /** False: calls are lost or moved when their turn also says something. */
  readonly keepsContentBesideCalls: boolean;
  /** Where the template looks for past reasoning; null: nowhere. */
  readonly reasoningField: string | null;
  readonly keepsContentBesideReasoning: boolean;
  /** `alnum9`: ids must be nine letters and digits. */
  readonly idForm: 'any' | 'alnum9';
}

/** Of a template that knows nothing of tools. */
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

/** Renders messages in the form templates know, without further care; throws `template_error`. */
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

/** Finds the dialect by rendering small conversations and looking at what comes out. */
export function probeDialect(render: ProbeRender, source: string): ToolDialect {
  /** What is written behind the question; null: the template refused. */
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

  const found = findCallShape(write);
  const shape = found?.shape ?? { idForm: 'any', argumentsForm: 'object', numCalls: 1 };
  const emptyContent = found?.emptyContent ?? '';
  const assistant = (numCalls: number, members: object, argumentsForm: CallShape['argumentsForm'] = 'object') => ({
    role: 'assistant',
    content: emptyContent,
    tool_calls: probeCalls({ ...shape, numCalls, argumentsForm }),
    ...members,
  });
  const format = found && (TOOL_FORMATS.find((one) => one.detect(found.written, { name: NAME })) ?? null);
  const isText = found !== null && write([assistant(1, {}, 'text')]) === found.written;
  const parallel = write([assistant(2, {})]);
  const beside = write([assistant(1, { content: CONTENT })]) ?? '';
  const isCallKept = beside.includes(VALUES[0]!) && beside.lastIndexOf(CONTENT) < beside.indexOf(VALUES[0]!);
  const plain = (members: object): string => write([{ role: 'assistant', content: CONTENT, ...members }], null) ?? '';
  const reasoningField =
    REASONING_FIELDS.find((field) => write([assistant(1, { [field]: REASONING })])?.includes(REASONING)) ??
    REASONING_FIELDS.find((field) => plain({ [field]: REASONING }).includes(REASONING)) ??
    // Shown only where a variable asks for it; the name is telling enough.
    (source.includes('reasoning_content') ? 'reasoning_content' : null);
  const besideReasoning =
    reasoningField === null ? null : write([assistant(1, { content: CONTENT, [reasoningField]: REASONING })]);
  const result = { role: 'tool', tool_call_id: 'call_0', name: NAME, content: RESULT };
  const results = write([format == null ? { role: 'assistant', content: CONTENT } : assistant(1, {}), result]);

  return {
    format: format ?? (isLfm2(source) ? lfm2 : plainJson),
    reasoning: findReasoning(source),
    // A call format that we do not know must not be advertised beside ours.
    showsTools: (format != null || found === null) && hasTools(),
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

/** LFM2's templates list the tools and mark results, but write no calls. */
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
