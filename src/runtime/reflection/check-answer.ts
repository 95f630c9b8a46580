import type { GrammarSource } from '../../sampling/grammar/index.ts';
import type { ToolDefinition } from '../chat-options.ts';
import { isLoop, whyDegenerate } from '../quality/degenerate.ts';
import { createSchemaCheck, type SchemaCheck } from './schema-check.ts';
import type { CheckedAnswer, Problem, Reflection } from './types.ts';
import { showValue } from '../../core/show-value.ts';

/** A call and how it ended. */
export interface AttemptedAnswer extends CheckedAnswer {
  /** By call; null: the answer ended inside it. */
  readonly outcomes: readonly ('complete' | 'truncated' | 'malformed' | null)[];
}

export interface AnswerChecks {
  /** Empty: the answer can be used. */
  problemsOf(answer: AttemptedAnswer): Promise<readonly Problem[]>;
  /** The tools and formats that errors can be about. */
  readonly subjects: readonly string[];
}

interface ChecksOptions {
  readonly grammar: GrammarSource | null;
  readonly tools: readonly ToolDefinition[];
  readonly check: Reflection['check'] | null;
  /** How the model writes calls, where the runtime told it; null: its chat template did. */
  readonly callForm: string | null;
}

/** Longer errors would push the request out of the context. */
const MAX_MESSAGE = 600;
const MAX_SCANNED = 20_000;

const parse = (text: string): { readonly value: unknown } | null => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

/** Whether a text without calls was meant as one: it names a tool beside JSON or parentheses. */
export function looksLikeCall(text: string, names: readonly string[]): boolean {
  const start = text.slice(0, MAX_SCANNED);
  if (/<\/?tool_call>|"(?:name|tool|function)"\s*:|"arguments"\s*:/.test(start)) return true;
  return names.some((name) => {
    for (let at = start.indexOf(name); at >= 0; at = start.indexOf(name, at + 1)) {
      if (/^["'`]?\s*[({:]/.test(start.slice(at + name.length, at + name.length + 4))) return true;
    }
    return false;
  });
}

/** Checks what a grammar did not enforce: calls written as text, empty values, and the caller's own rules. */
export function createAnswerChecks({ grammar, tools, check, callForm }: ChecksOptions): AnswerChecks {
  const names = tools.map((tool) => tool.function.name);
  const schemas = new Map<string, SchemaCheck>();
  const schemaOf = (name: string): SchemaCheck | null => {
    const parameters = tools.find((tool) => tool.function.name === name)?.function.parameters;
    if (parameters === undefined) return null;
    const known = schemas.get(name) ?? createSchemaCheck(parameters);
    schemas.set(name, known);
    return known;
  };
  const isJson = grammar?.type === 'json_object' || grammar?.type === 'json_schema';

  function* callProblems({ text, toolCalls, outcomes }: AttemptedAnswer): Generator<Problem> {
    if (toolCalls.length === 0) {
      if (tools.length === 0 || !looksLikeCall(text, names)) return;
      const form = callForm === null ? 'is written as the system message says' : `is nothing but ${callForm}`;
      yield { subject: 'tools', stage: 0, message: `it looks like a tool call in the wrong form; a call of ${names.slice(0, 8).join(', ')} ${form}` }; // prettier-ignore
      return;
    }
    for (const [i, { name, arguments: args }] of toolCalls.entries()) {
      const problem = (stage: Problem['stage'], message: string): Problem => ({ subject: name, stage, message: `the call of ${name}: ${message}` }); // prettier-ignore
      const parsed = parse(args === '' ? '{}' : args);
      if (outcomes[i] !== 'complete') yield problem(1, 'it is incomplete; use shorter arguments');
      else if (parsed === null) yield problem(1, 'its arguments are not JSON');
      else {
        const problems = schemaOf(name)?.problemsOf(parsed.value) ?? [];
        yield* problems.map((message) => problem(2, message));
        const empty = problems.length === 0 ? whyDegenerate(parsed.value) : null;
        if (empty !== null) yield problem(3, empty);
      }
    }
  }

  function* formatProblems({ text, toolCalls }: AttemptedAnswer): Generator<Problem> {
    if (!isJson || toolCalls.length > 0) return;
    const parsed = parse(text);
    if (parsed === null) yield { subject: 'json', stage: 0, message: 'it is not JSON' };
    const empty = parsed === null ? null : whyDegenerate(parsed.value);
    if (empty !== null) yield { subject: 'json', stage: 3, message: `it is valid, but ${empty}` };
  }

  return {
    subjects: [...names, ...(tools.length === 0 ? [] : ['tools']), ...(isJson ? ['json'] : []), 'check'],
    async problemsOf(answer) {
      const problems = [...callProblems(answer), ...formatProblems(answer)];
      if (problems.length > 0) return problems;
      const { text, toolCalls } = answer;
      if (toolCalls.length === 0 && text.trim() === '') return [{ subject: 'check', stage: 0, message: 'it is empty' }];
      if (toolCalls.length === 0 && isLoop(text))
        return [{ subject: 'check', stage: 0, message: 'it repeats the same words' }];
      const error = (await check?.({ text, toolCalls, finishReason: answer.finishReason })) ?? null;
      return error === null
        ? []
        : [
            {
              subject: 'check',
              stage: 3,
              message: (typeof error === 'string' ? error : showValue(error)).slice(0, MAX_MESSAGE),
            },
          ];
    },
  };
}
