import { RuvLLMError } from '../core/errors.ts';
import { wireNameOf } from './errors.ts';
import type { GenerateJob, OutputConstraint } from './generate-job.ts';

/** The fields of a body that options of the library come from, where a format has its own. */
export interface FieldNames {
  readonly maxTokens?: string;
  readonly reasoning?: string;
  readonly grammar?: string;
}

const GRAMMAR_FIELDS: Readonly<Record<OutputConstraint['kind'], string>> = {
  json_object: 'response_format',
  json_schema: 'response_format',
  grammar: 'grammar',
  regex: 'regex',
};

/** What an option of a job is called in its request. */
export function fieldOf({ fieldNames = {}, constraint }: GenerateJob, option: string): string {
  if (option === 'grammar' && constraint !== null) return fieldNames.grammar ?? GRAMMAR_FIELDS[constraint.kind];
  const own: Readonly<Record<string, string>> = { ...fieldNames };
  return Object.hasOwn(own, option) ? own[option]! : wireNameOf(option);
}

/** A failure of the library in the words of the request: whoever sent `max_output_tokens` knows of no `maxTokens`. */
export function inFieldNames(error: unknown, job: GenerateJob): unknown {
  if (!(error instanceof RuvLLMError) || 'httpStatus' in error.data) return error;
  const option = error.data['option'] ?? grammarOption(error, job);
  if (typeof option !== 'string') return error;
  const field = fieldOf(job, option);
  const { code, data, isRetryable } = error;
  const message = error.message.replace(`option "${option}"`, () => `'${field}'`);
  return new RuvLLMError(code, message, { cause: error, data: { ...data, option: field }, isRetryable });
}

/** Refusals of schemas and grammars name a place in them; with tools beside a constraint it may be in either. */
function grammarOption({ code, message }: RuvLLMError, { constraint, tools }: GenerateJob): string | null {
  if ((code !== 'unsupported' && code !== 'invalid_option') || !message.startsWith('grammar: ')) return null;
  if (constraint !== null) return tools.length === 0 ? 'grammar' : null;
  return tools.length === 0 ? null : 'tools';
}
