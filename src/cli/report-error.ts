import { type ErrorCode, type RuvLLMError, serializeError } from '../core/errors.ts';
import type { CliIo } from './io.ts';
import { escapeForTerminal, escapeLine, toSafeJson } from './safe-text.ts';
import { hasColour, paint } from './terminal/colour.ts';

/** 2 for invalid options, otherwise 1. */
export function exitCodeOf(error: unknown): number {
  return serializeError(error).code === 'invalid_option' ? 2 : 1;
}

interface ReportOptions {
  readonly io: Pick<CliIo, 'stdout' | 'stderr' | 'environment'>;
  readonly isJson: boolean;
  /** null if no command was recognized. */
  readonly commandName: string | null;
}

/** Prints the error: as JSON on stdout with --json, otherwise as one line and a next step on stderr. */
export function reportError(error: unknown, { io, isJson, commandName }: ReportOptions): void {
  const { code, message, data } = serializeError(error);
  if (isJson) {
    io.stdout.write(`${toSafeJson({ error: { code, message, data } })}\n`);
  } else {
    const next = nextStep({ code, message, data }, commandName);
    const isColoured = hasColour(io, io.stderr);
    io.stderr.write(`${paint('error:', 'red', isColoured)} ${escapeLine(shorten(message))}\n`);
    if (next !== null) io.stderr.write(`${paint('next:', 'cyan', isColoured)} ${escapeLine(next)}\n`);
  }
  // Only bugs need a stack trace.
  if (code === 'internal' && error instanceof Error && (io.environment['RUVLLM_DEBUG'] ?? '') !== '') {
    io.stderr.write(`${escapeForTerminal(error.stack ?? '')}\n`);
  }
}

/** A message may quote a rejected input of megabytes. */
const MAX_MESSAGE = 4000;

function shorten(message: string): string {
  if (message.length <= MAX_MESSAGE) return message;
  return `${message.slice(0, MAX_MESSAGE)}… (${message.length} characters; --json shows all)`;
}

type Reported = Pick<RuvLLMError, 'code' | 'message' | 'data'>;

/** Next steps of commands whose `not_found` is not about a model. */
const NOT_FOUND_STEPS: Readonly<Record<string, string | null>> = {
  memory: null,
  audit: null,
  sessions: null,
  feedback: 'ruvllm audit search lists requests and their ids',
  learn: 'ruvllm learn status lists models and requests',
  keys: 'ruvllm keys list shows keys and their ids',
  federate: null,
};

const NEXT_STEPS: Partial<Record<ErrorCode, (error: Reported, commandName: string | null) => string | null>> = {
  invalid_option({ message, data }, commandName) {
    if (typeof data['next'] === 'string') return data['next'];
    const suggestion = /^unknown command .* \(did you mean (\w+)\?\)$/.exec(message)?.[1];
    const name = commandName ?? suggestion;
    return name === undefined ? 'ruvllm --help' : `ruvllm ${name} --help`;
  },
  io: ({ data }) => (typeof data['url'] === 'string' ? 'ruvllm ps lists running servers' : null),
  invalid_model_file: () => 'ruvllm show MODEL, or ruvllm pull MODEL again',
  unknown_architecture: () => 'ruvllm doctor lists the supported architectures',
  not_found(error, commandName) {
    const suggestions = error.data['suggestions'];
    if (Array.isArray(suggestions))
      return `did you mean ${suggestions.join(' or ')}? ruvllm list shows the cached models`;
    const reference = /^model (\S+) is not in the cache/.exec(error.message)?.[1];
    if (reference !== undefined) return `ruvllm pull ${reference}`;
    if (error.message.startsWith('there is no adapter ')) return 'ruvllm adapters list shows the loaded adapters';
    const hasStep = commandName !== null && Object.hasOwn(NOT_FOUND_STEPS, commandName);
    return hasStep ? NOT_FOUND_STEPS[commandName]! : 'ruvllm list';
  },
  not_loaded: (_, commandName) => (commandName === 'learn' ? 'repeat the command with --model MODEL' : null),
  remote_failed: () => 'ruvllm ps lists running servers',
  conflict: ({ data }) =>
    typeof data['next'] === 'string'
      ? data['next']
      : typeof data['port'] === 'number'
        ? 'choose another port with --port; ruvllm ps lists running servers'
        : null,
  context_overflow: () => 'shorten the prompt, lower --max-tokens or raise --context',
  out_of_memory: () =>
    'lower --context, raise --memory-budget or use a smaller model; ruvllm doctor shows the available memory',
  deadline_exceeded: () => 'raise --timeout or lower --max-tokens',
  empty_prompt: () => 'ruvllm run MODEL "your prompt"',
  upload_failed: () => 'after a lost connection, repeat the command: finished parts are not sent again',
  download_failed: () => 'repeat the command: the download resumes where it stopped',
  disk_full: () => 'ruvllm list, then ruvllm rm MODEL',
  kernel_failed: () => 'ruvllm doctor',
  internal: () => 'set RUVLLM_DEBUG=1 to see a stack trace',
};

function nextStep(error: Reported, commandName: string | null): string | null {
  return NEXT_STEPS[error.code]?.(error, commandName) ?? null;
}
